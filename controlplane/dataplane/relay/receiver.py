"""The endpoint that takes the batches of relays, on data planes and on relays."""

import asyncio
from dataclasses import replace

from controlplane.dataplane.ingest.relay_message import RelayMessage
from controlplane.dataplane.serving import responses
from controlplane.dataplane.serving.call import Call
from controlplane.dataplane.serving.responses import NO_STORE, Response
from controlplane.dataplane.state import State

from .batch import MessageReader


class BatchReceiver:
    """Takes batches for the data plane or relay `name`."""

    def __init__(self) -> None:
        self.name = ""

    async def relay_batch(self, state: State, call: Call) -> Response:
        """Store a relay's message; answer once that is durable.

        The sender's upstream is this process's name: it can't know it otherwise.
        """
        reader = MessageReader(responses.parse_object(call.body))
        batches = []
        for batch in reader:
            batches.append(batch)
            for report in batch.reports:
                state.callers.note_use(report.token_id, report.document.get("service"))
            await asyncio.sleep(0)  # Polls run in between.
        status = replace(reader.status, upstream=self.name)
        message = RelayMessage(status=status, relays=reader.relays, batches=batches)
        refused = await state.ledger.receive(message)
        content = {"accepted": True, "plane": self.name, "refused_reports": refused}
        return responses.answer_json(200, content, NO_STORE)
