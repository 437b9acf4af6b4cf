from switchgear import Switchgear

with Switchgear.from_env() as gear:  # SWITCHGEAR_URL, SWITCHGEAR_TOKEN
    gear.wait_ready()  # only scripts need it; services start with its last snapshot
    decision = gear.check(feature="chat", targeting_key="kim")
    if decision:
        print("Hello, Kim.")
    else:
        print(f"Not now: {decision.switch} is stopped, {decision.reason}")
