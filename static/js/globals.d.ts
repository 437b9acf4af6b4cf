// Types that the scripts assume of pages: elements are HTML elements, and events carry these details.

interface ParentNode {
  querySelector<Tag extends keyof HTMLElementTagNameMap>(tag: Tag): HTMLElementTagNameMap[Tag];
  querySelector(selectors: string): HTMLElement;
  querySelectorAll(selectors: string): NodeListOf<HTMLElement>;
}

interface Element {
  closest<Tag extends keyof HTMLElementTagNameMap>(tag: Tag): HTMLElementTagNameMap[Tag];
  closest(selectors: string): HTMLElement;
}

interface EventTarget {
  closest(selectors: string): HTMLElement;
}

/** Milliseconds since 1970 of the server's clock. */
type ServerTime = number;

interface DocumentEventMap {
  "htmx:afterRequest": CustomEvent;
  "htmx:afterSettle": CustomEvent;
  "htmx:afterSwap": CustomEvent;
  "htmx:beforeRequest": CustomEvent;
  "htmx:beforeSend": CustomEvent;
  "htmx:configRequest": CustomEvent;
  "htmx:load": CustomEvent;
  "clock:set": CustomEvent<ServerTime>;
  "switchgear:announce": CustomEvent<{ message: string }>;
  "switchgear:done": CustomEvent<{ message: string; shown: boolean }>;
  "switchgear:no-response": CustomEvent<{ verb: string; path: string }>;
  "switchgear:open": CustomEvent<{ path: string; from?: HTMLElement }>;
  "switchgear:toast": CustomEvent<{ message: string; signIn?: boolean; outcome?: boolean }>;
  "switchgear:url-state": CustomEvent<{ name: string; value: string }>;
}

/** The part of htmx that the scripts use. */
interface Htmx {
  ajax(verb: string, path: string, context: Record<string, unknown>): Promise<void>;
  defineExtension(name: string, extension: Record<string, (...values: any[]) => unknown>): void;
  process(element: Element): void;
}

/** A line of a plot: the values of one window, null where nothing is known. */
interface PlotLine {
  name: string;
  values: (number | null)[];
}

/** A period that a plot marks, in seconds since 1970. */
interface PlotBand {
  name: string;
  kind: string;
  label?: string;
  from: number;
  to: number | null;
}

interface PlotLimit {
  name: string;
  severity: string;
  value: number;
}

interface PlotData {
  times: number[];
  lines: PlotLine[];
  bands: PlotBand[];
  limits: PlotLimit[];
  step: number;
}

interface Window {
  htmx?: Htmx;
  uPlot: any;
}
