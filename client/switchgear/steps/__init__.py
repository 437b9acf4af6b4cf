"""Durable jobs in steps: each step is done once, and a job resumes after a crash.

    def charge(context):
        order = context.input["order"]
        return context.once("payment", "gateway", f"charge:{order}", lambda: pay(order))

    job = Job("order", (Step(name="charge", run=charge, compensate=refund), …))
    runner = Runner(SQLiteStore("jobs.db"), [job])
    runner.run(runner.add("order", {"order": 17}))

The intent of an external effect is recorded before it, the outcome after it. So no finished effect
is repeated, and a worker that dies in between leaves an intent without an outcome.
"""

from switchgear.steps.context import Context
from switchgear.steps.effects import Effect
from switchgear.steps.errors import (
    EffectRepeated,
    JobCompleted,
    JobTaken,
    KeyTaken,
    LeaseLost,
    NotApproved,
    NotKept,
    Paused,
    PlanChanged,
)
from switchgear.steps.jobs import Job, Step
from switchgear.steps.records import (
    ApprovalRecord,
    ApprovalState,
    EffectRecord,
    EffectState,
    JobRecord,
    JobStatus,
    Lease,
    Progress,
    StepRecord,
    StepStatus,
)
from switchgear.steps.risks import Estimate, Risk, risk_of
from switchgear.steps.runner import Runner
from switchgear.steps.sqlite_store import SQLiteStore
from switchgear.steps.store import Store

__all__ = [
    "ApprovalRecord",
    "ApprovalState",
    "Context",
    "Effect",
    "EffectRecord",
    "EffectRepeated",
    "EffectState",
    "Estimate",
    "Job",
    "JobCompleted",
    "JobRecord",
    "JobStatus",
    "JobTaken",
    "KeyTaken",
    "Lease",
    "LeaseLost",
    "NotApproved",
    "NotKept",
    "Paused",
    "PlanChanged",
    "Progress",
    "Risk",
    "Runner",
    "SQLiteStore",
    "Step",
    "StepRecord",
    "StepStatus",
    "Store",
    "risk_of",
]
