"""Claiming: asking the store for jobs, handing them to workers, and settling them.

`Desk` is the public face and owns all state: workers take claims from it and leave their ends, the
crew opens seats at it, others hint, poll, lose or stop claims through its methods. `ExchangeLoop`
carries what lies at the desk to the store and back, `ClaimPacing` says when to look and how much to
claim, `StoreClock` when attempts start and end; nobody else talks to these three. `Handover` tells
the supervisor how long workers are without a job in between. What a claim goes through:

                     claimed ahead                       lost: its lease is gone,
    ┌───────┐       ┌───────┐        a worker takes it   nothing more is written
    │ store │ ────> │ READY │ ──────────────┐           ┌──────────────> (forgotten)
    └───────┘ ──┐   └───────┘               v           │
      ^  ^      │       │              ┌─────────┐ ─────┘
      │  │      └───────│────────────> │ STARTED │
      │  │   claimed for an idle       └─────────┘
      │  │   worker     │                   │ its worker settles it
      │  │              │ given back        v
      │  │              └────────────> ┌───────┐   exchange   ┌─────────┐
      │  │                             │ ENDED │ ───────────> │ UNDER   │
      │  │         put back: the store └───────┘ <─────────── │ WAY     │
      │  │         was away, or the reply was lost            └─────────┘
      │  └──────────────────── settled, or refused as stale ───────┘
      └── a claim is asked for with each exchange: for idle workers, and for soon

Two exchanges may be under way at once. A claim whose reply was lost is read back by its token, an
end whose reply was lost is sent again.
"""
