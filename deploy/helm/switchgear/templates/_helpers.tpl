{{- define "switchgear.name" -}}
app.kubernetes.io/name: switchgear
{{- end }}

{{/* Labels of objects; `component` may be empty. Selectors never have those of the chart, which change. */}}
{{- define "switchgear.labels" -}}
{{ include "switchgear.name" . }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "switchgear.selector" -}}
{{ include "switchgear.name" . }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "switchgear.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ printf "%s@%s" .repository .digest }}
{{- else -}}
{{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "switchgear.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "switchgear.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}

{{/* The pod's fields that every workload has. `account` is false for hooks, which run before it exists. */}}
{{- define "switchgear.podBase" -}}
{{- if .account }}
serviceAccountName: {{ .root.Values.serviceAccount.name }}
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "switchgear.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "switchgear.spread" -}}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "switchgear.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}

{{- define "switchgear.scratch" -}}
{{- if .data }}
- name: data
  emptyDir:
    sizeLimit: 1Gi
{{- end }}
- name: tmp
  emptyDir:
    sizeLimit: 256Mi
{{- end }}

{{/* Parameters: component, root, values (of the component), startup, ready, period, drains, spreads, claim; args and env if not usual. */}}
{{- define "switchgear.podTemplate" -}}
metadata:
  labels:
    {{- include "switchgear.selector" . | nindent 4 }}
  annotations:
    checksum/config: {{ .root.Values.config | toYaml | sha256sum }}
    {{- with .values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "switchgear.podBase" (dict "root" .root "account" true) | nindent 2 }}
  terminationGracePeriodSeconds: 30
  securityContext:
    {{- include "switchgear.podSecurity" . | nindent 4 }}
    {{- if .claim }}
    # With `Always`, a volume mounted again has its files opened to the group, and the data plane
    # refuses a copy that others can read.
    fsGroupChangePolicy: OnRootMismatch
    {{- end }}
  {{- if .spreads }}
  {{- include "switchgear.spread" . | nindent 2 }}
  {{- end }}
  {{- include "switchgear.scheduling" .values | nindent 2 }}
  containers:
    - name: {{ .component }}
      image: {{ include "switchgear.image" .root }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: {{ .args | default (list "serve" .component) | toJson }}
      ports:
        - name: http
          containerPort: 8000
      envFrom:
        - configMapRef:
            name: switchgear
        - secretRef:
            name: {{ .root.Values.secrets.application }}
      {{- if or .env .root.Values.extraEnv }}
      env:
        {{- concat (.env | default list) .root.Values.extraEnv | toYaml | nindent 8 }}
      {{- end }}
      startupProbe:
        httpGet:
          path: {{ .startup }}
          port: http
        {{- if eq .startup "/health/startup" }}
        initialDelaySeconds: 10
        {{- end }}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 12
      livenessProbe:
        httpGet:
          path: /health/live
          port: http
        periodSeconds: {{ .period }}
        timeoutSeconds: 3
        failureThreshold: 3
      readinessProbe:
        httpGet:
          path: {{ .ready }}
          port: http
        periodSeconds: {{ .readyPeriod }}
        timeoutSeconds: 3
        failureThreshold: 3
      {{- if .drains }}
      # Routes are withdrawn while a pod ends, not before.
      lifecycle:
        preStop:
          exec:
            command: ["sleep", "5"]
      {{- end }}
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      securityContext:
        {{- include "switchgear.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /data
        - name: tmp
          mountPath: /tmp
  volumes:
    {{- include "switchgear.scratch" (dict "data" (not .claim)) | nindent 4 }}
{{- end }}
