"""Operation ids and summaries of the API's operations: `METHOD path operation_id Summary`."""

ROOT = "/api/v1"
ROWS = """
GET /alerts/ list_alerts List alerts
POST /alerts/ack acknowledge_alerts Acknowledge several alerts or a group
GET /alerts/{alert_id}/ get_alert Get an alert
POST /alerts/{alert_id}/ack acknowledge_alert Acknowledge an alert
GET /alerts/{alert_id}/comments/ list_alert_comments List the comments on an alert
POST /alerts/{alert_id}/comments/ comment_alert Comment on an alert
GET /alerts/{alert_id}/postmortem get_alert_postmortem Draft a postmortem of an alert
GET /approvals/ list_approvals List approval requests
GET /approvals/{approval_id}/ get_approval Get an approval request
PATCH /approvals/{approval_id}/ edit_approval Edit your own approval request
POST /approvals/{approval_id}/approve approve_request Approve a request
POST /approvals/{approval_id}/deny deny_request Deny or withdraw a request
GET /attention/ list_attention List what needs attention
GET /audit/ list_audit_entries Search the audit trail
GET /audit/export export_audit_trail Export the audit trail
GET /audit/who-could get_past_authority Find who could do an action in the past
GET /authority/ list_authority_rules List the rules of authority
POST /authority/ask ask_owner Ask the owner of a resource for permission
GET /authority/decision get_authority_decision Find whether you may do an action
PUT /authority/{action}/{kind}/ put_authority_rule Request a rule of authority
DELETE /authority/{action}/{kind}/ delete_authority_rule Request the default rule
GET /breakers/ list_breakers List circuit breakers
GET /breakers/{caller}/{callee}/history list_breaker_transitions List a breaker's transitions
GET /channels/ list_channels List channels
POST /check check_traffic Check if a call may proceed
GET /config get_service_config Poll a service's policies and overrides
GET /configuration/ export_configuration Export the configuration
POST /configuration/ load_configuration Load configuration files
POST /configuration/diff compare_configuration Compare configuration files
GET /configuration/schemas list_configuration_schemas Get the files' JSON Schemas
GET /degradation get_degradation Get the degradation level
GET /deliveries/ list_deliveries List outbound messages
POST /deliveries/retry retry_failed_deliveries Retry a destination's failed messages
GET /deliveries/{delivery_id}/ get_delivery Get an outbound message
POST /deliveries/{delivery_id}/discard discard_delivery Discard a failed message
POST /deliveries/{delivery_id}/retry retry_delivery Retry a failed message
GET /dependencies/ list_dependencies List dependencies
POST /dependencies/ create_dependency Register a dependency
GET /dependencies/{caller}/{callee}/ get_dependency Get a dependency
PUT /dependencies/{caller}/{callee}/ put_dependency Register or replace a dependency
DELETE /dependencies/{caller}/{callee}/ delete_dependency Remove a dependency
PUT /dependencies/{caller}/{callee}/override set_override Force a breaker's mode
DELETE /dependencies/{caller}/{callee}/override clear_override Remove a breaker's override
POST /dependencies/{caller}/{callee}/override/undo undo_override Undo your own override
GET /dlq/ list_dead_letter_streams List streams of dead letters
GET /dlq/archive/ list_archived_letters List archived dead letters
GET /dlq/archive/{departure_id}/ get_archived_letter Get an archived dead letter
POST /dlq/archive/{departure_id}/restore restore_letter Restore an archived dead letter
GET /dlq/jobs/ list_dead_letter_jobs List bulk jobs
POST /dlq/jobs/ create_dead_letter_job Retry, discard or purge in bulk
GET /dlq/jobs/{job_id}/ get_dead_letter_job Get a bulk job
POST /dlq/jobs/{job_id}/cancel cancel_dead_letter_job Cancel a bulk job
POST /dlq/jobs/{job_id}/pause pause_dead_letter_job Pause a bulk job
POST /dlq/jobs/{job_id}/resume resume_dead_letter_job Resume a bulk job
GET /dlq/outbox/ list_outbox_letters List failed outbound messages
POST /dlq/outbox/{message_id}/discard discard_outbox_letter Discard a failed outbound message
POST /dlq/outbox/{message_id}/retry retry_outbox_letter Retry a failed outbound message
GET /dlq/streams/{name}/export export_letters Export a stream's dead letters
GET /dlq/streams/{name}/groups/ list_letter_groups Group dead letters by failure
GET /dlq/streams/{name}/messages/ list_letters List a stream's dead letters
GET /dlq/streams/{name}/messages/{entry_id}/ get_letter Get a dead letter
POST /dlq/streams/{name}/messages/{entry_id}/discard discard_letter Discard a dead letter
POST /dlq/streams/{name}/messages/{entry_id}/retry retry_letter Retry a dead letter
POST /dlq/streams/{name}/messages/{entry_id}/reveal reveal_letter Reveal a dead letter's payload
GET /drills/ list_drills List drills
POST /drills/ start_drill Start or schedule a drill
GET /drills/instances/ list_drill_instances List drill instances
POST /drills/instances/ mark_drill_instances Add drill instances
DELETE /drills/instances/ unmark_drill_instances Remove drill instances
GET /drills/schedules/ list_drill_schedules List scheduled drills
DELETE /drills/schedules/{scope}/{key}/ delete_drill_schedule Delete a drill schedule
GET /drills/{drill_id}/ get_drill Get a drill
GET /environment/ get_environment Summarize this environment
GET /escalations/ list_escalations List escalations
POST /escalations/{escalation_id}/acknowledge acknowledge_escalation Acknowledge an escalation
POST /experiments/{key}/arms check_experiment_arms Test an experiment's sample ratio
GET /favorites/ list_favorites List your favorites
PUT /favorites/{kind}/{key} add_favorite Add a favorite
DELETE /favorites/{kind}/{key} remove_favorite Remove a favorite
GET /fleet/ list_fleet List data planes and relays
GET /gates/ list_gates List external gates
GET /gates/{name} get_gate Get an external gate
POST /gates/{name} report_gate Report an external gate's verdict
POST /hooks/alertmanager receive_alertmanager Receive Alertmanager notifications
GET /jobs/ list_jobs List background jobs
GET /jobs/{job_id}/ get_job Get a background job
POST /jobs/{job_id}/cancel cancel_job Cancel a background job
POST /jobs/{job_id}/pause pause_job Pause a background job
POST /jobs/{job_id}/resume resume_job Resume a background job
GET /keys list_public_keys List the public keys of signed snapshots
GET /openslo/ export_openslo Export SLOs as OpenSLO
POST /openslo/ import_openslo Import OpenSLO, Sloth or Pyrra documents
GET /ramps/ list_ramps List ramps
GET /ramps/{ramp_id}/ get_ramp Get a ramp
POST /ramps/{ramp_id}/abort abort_ramp Abort a ramp
POST /ramps/{ramp_id}/advance advance_ramp Advance a ramp to its next step
POST /ramps/{ramp_id}/pause pause_ramp Pause a ramp
POST /ramps/{ramp_id}/resume resume_ramp Resume a ramp
POST /relay/lost-version ask_lost_version Ask whether a relay's version was lost
POST /relay/orders exchange_relay_orders Exchange emergency orders with a relay
POST /report report_instance Report an instance's state
POST /relay/batch store_relay_batch Store a relay's batches
GET /relay/stream follow_data_plane Follow a data plane as a relay
GET /reports/weekly/ list_weekly_reports List weekly reports
GET /reports/weekly/{week}/ get_weekly_report Get a weekly report
POST /reports/weekly/{week}/sign sign_weekly_report Sign a weekly report
GET /reports/weekly/{week}/{team}/ get_team_report Get a team's weekly report
POST /reports/weekly/{week}/{team}/sign sign_team_report Sign a team's weekly report
POST /reviews/{review_id}/sign sign_review Sign a break-glass review
GET /routes/ list_routes List message routes
POST /routes/ create_route Create a message route
DELETE /routes/{route_id}/ delete_route Delete a message route
GET /rules/ list_rules List safety rules
POST /rules/ propose_rule Propose a safety rule
GET /rules/{rule_id}/ get_rule Get a safety rule
PUT /rules/{rule_id}/ propose_rule_change Propose a change to a safety rule
DELETE /rules/{rule_id}/ propose_rule_removal Propose the removal of a safety rule
GET /samples/ list_samples List the sample configuration
POST /samples/clear clear_samples Clear the sample configuration
POST /samples/load load_samples Load the sample configuration
GET /services/ list_services List services
POST /services/ create_service Register a service
GET /services/{slug}/ get_service Get a service
PUT /services/{slug}/ put_service Register or replace a service
GET /sessions/ list_sessions List browser sessions
POST /sessions/end end_sessions End a person's other sessions
DELETE /sessions/{session_id}/ end_session End a browser session
POST /sli/ push_sli_points Push SLI points
GET /slos/ list_slos List SLOs
POST /slos/ create_slo Create an SLO
GET /slos/{name}/ get_slo Get an SLO
PUT /slos/{name}/ put_slo Create or replace an SLO
DELETE /slos/{name}/ delete_slo Delete an SLO
POST /slos/{name}/backtest backtest_slo Backtest an SLO's rules
GET /slos/{name}/exclusions/ list_exclusions List an SLO's exclusions
POST /slos/{name}/exclusions/ create_exclusion Exclude a time range from an SLO
DELETE /slos/{name}/exclusions/{exclusion_id}/ delete_exclusion Remove an exclusion
GET /slos/{name}/series get_slo_series Get an SLO's time series
GET /slos/{name}/status get_slo_status Get an SLO's status
GET /snapshot get_snapshot Poll the snapshot of switches
GET /snapshot/stream stream_snapshots Stream snapshots
GET /switches/ list_switches List switches
POST /switches/trip trip_switch Trip a switch from a monitor
GET /switches/{scope}/{key}/ get_switch Get a switch
PATCH /switches/{scope}/{key}/ describe_switch Update a switch's owner and runbook
POST /switches/{scope}/{key}/acknowledge acknowledge_switch Acknowledge an engaged switch
GET /switches/{scope}/{key}/calls list_switch_calls List a switch's blocked and allowed calls
GET /switches/{scope}/{key}/comments/ list_switch_comments List the comments on the latest episode
POST /switches/{scope}/{key}/comments/ comment_switch Comment on the latest episode
POST /switches/{scope}/{key}/engage engage_switch Engage a switch
POST /switches/{scope}/{key}/extend extend_switch Extend a switch's expiry
GET /switches/{scope}/{key}/history list_switch_episodes List a switch's episodes
GET /switches/{scope}/{key}/preview preview_switch Preview a switch's blast radius
POST /switches/{scope}/{key}/reconfirm reconfirm_switch Re-confirm a permanent switch
POST /switches/{scope}/{key}/release release_switch Release a switch
POST /switches/{scope}/{key}/undo undo_engage Undo your own engagement
GET /targets/ list_targets List notification targets
POST /targets/ create_target Create a notification target
GET /targets/{target_id}/ get_target Get a notification target
PUT /targets/{target_id}/ put_target Replace a notification target
DELETE /targets/{target_id}/ delete_target Delete a notification target
POST /targets/{target_id}/test test_target Send a test message
GET /teams/ list_teams List teams
POST /teams/ create_team Request a new team
GET /teams/{slug}/ get_team Get a team
PATCH /teams/{slug}/ change_team Change a team
DELETE /teams/{slug}/ delete_team Request the deletion of a team
GET /teams/{slug}/contacts/ get_team_contacts Get a team's contacts
PUT /teams/{slug}/contacts/ put_team_contacts Replace a team's contacts
GET /thresholds/ list_thresholds List threshold rules
POST /thresholds/ create_threshold Create a threshold rule
GET /thresholds/{name}/ get_threshold Get a threshold rule
PUT /thresholds/{name}/ put_threshold Create or replace a threshold rule
DELETE /thresholds/{name}/ delete_threshold Delete a threshold rule
GET /tokens/ list_tokens List API tokens
POST /tokens/ create_token Create an API token
POST /tokens/{token_id}/hand-over hand_over_token Transfer an API token
POST /tokens/{token_id}/rotate rotate_token Rotate an API token
POST /tokens/{token_id}/revoke revoke_token Revoke an API token
GET /trip-policies/ get_trip_policies Get the trip policies
PUT /trip-policies/ put_trip_policies Replace the trip policies
GET /trips/ list_trips List trip requests
GET /users/ list_users List users
POST /users/ create_user Create a user
PATCH /users/{user_id}/ update_user Update a user
GET /emergency/orders list_emergency_orders List emergency orders
POST /emergency/orders create_emergency_order Give an emergency order
POST /ofrep/v1/evaluate/flags evaluate_flags Evaluate all flags (OFREP)
POST /ofrep/v1/evaluate/flags/{key} evaluate_flag Evaluate a flag (OFREP)
GET /ofrep/v1/events stream_flag_events Stream flag changes (OFREP)
"""

OPERATIONS = {
    (method.lower(), path if path.startswith("/ofrep/") else ROOT + path): (operation_id, summary)
    for row in ROWS.strip().splitlines()
    for method, path, operation_id, summary in [row.split(" ", 3)]
}
