"""Slack's error codes, grouped by the reaction to them."""

PERMANENT = {
    "account_inactive": "the bot's account is deactivated; make a new token",
    "action_prohibited": "an administrator of the workspace forbids it",
    "cannot_reply_to_message": "the message to reply to takes no replies",
    "cant_update_message": "the message to update is not the bot's",
    "channel_is_archived": "unarchive the channel or name another one",
    "channel_not_found": "set SLACK_CHANNEL to a channel the bot can see",
    "edit_window_closed": "the message is too old to be updated",
    "invalid_auth": "set SLACK_BOT_TOKEN to a valid token",
    "invalid_blocks": "Slack does not accept the message's layout",
    "invalid_blocks_format": "Slack does not accept the message's layout",
    "invalid_payload": "Slack does not accept the message",
    "invalid_token": "set SLACK_WEBHOOK_URL to a valid webhook",
    "is_archived": "unarchive the channel or name another one",
    "message_not_found": "the message to update is gone",
    "missing_scope": "give the bot the scope chat:write",
    "msg_too_long": "the message is too long for Slack",
    "no_active_hooks": "the webhook is disabled; make a new one",
    "no_permission": "give the bot the scope chat:write",
    "no_service": "the webhook is disabled or removed; make a new one",
    "no_service_id": "set SLACK_WEBHOOK_URL to a valid webhook",
    "no_team": "set SLACK_WEBHOOK_URL to a valid webhook",
    "no_text": "Slack does not accept the message",
    "not_authed": "set SLACK_BOT_TOKEN",
    "not_in_channel": "invite the bot to the channel",
    "org_login_required": "the workspace is being moved; make a new token afterwards",
    "posting_to_general_channel_denied": "name another channel",
    "restricted_action": "an administrator of the workspace forbids it",
    "team_disabled": "the workspace is disabled",
    "team_not_found": "set SLACK_WEBHOOK_URL to a valid webhook",
    "token_expired": "set SLACK_BOT_TOKEN to a new token",
    "token_revoked": "set SLACK_BOT_TOKEN to a new token",
    "user_not_found": "set SLACK_WEBHOOK_URL to a valid webhook",
}
"""Permanent errors, with what to do about them. Unknown codes are retried."""

IN_DOUBT = {"fatal_error", "internal_error", "request_timeout", "service_unavailable"}
"""Errors after which, by Slack's documentation, the call may have partly succeeded."""

TRANSIENT = {*IN_DOUBT, "ratelimited", "rate_limited", "team_added_to_org"}
"""Errors after which a lookup is retried; any other code ends it."""

THREAD_IS_GONE = "thread_not_found"

ROOT_IS_LOST = {
    "cannot_reply_to_message",
    "cant_update_message",
    "channel_not_found",
    "edit_window_closed",
    "is_archived",
    "message_not_found",
    "not_in_channel",
}
"""Errors after which the first message of a thread can't be used, so a new one is posted."""
