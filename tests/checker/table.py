"""All invariants, and all ways to check each."""

from __future__ import annotations

from tests.checker.invariant import Invariant
from tests.checker.invariants.asking import Asked, AskedInTheEnd, AskedOfHandlers
from tests.checker.invariants.attempts import (
    BegunOnce,
    CountedClaims,
    CountedSeen,
    PhasesOnce,
    WholeBudget,
)
from tests.checker.invariants.caps import Caps, CapsSeen
from tests.checker.invariants.counting import (
    CountsAndEvents,
    CountsAndTable,
    CrewSize,
    EdgesAndTable,
    EventsAndTable,
    NobodyDismissedEarly,
)
from tests.checker.invariants.duties import CountedSlots, OneHolder, OneJobASlot
from tests.checker.invariants.effects import FinishedWork, InsideTheLease, OneHandlerAtATime
from tests.checker.invariants.ending import (
    LegalEdges,
    LegalSteps,
    LegalStepsSeen,
    OneEnd,
    OneEndSeen,
)
from tests.checker.invariants.keeping import NoInvention, NoLoss, OnceByKey
from tests.checker.invariants.leaving import NothingLeft, UnknownClaims
from tests.checker.invariants.liveness import AllEnd, DutyHadAgain, Reclaimed
from tests.checker.invariants.load import NobodyWaitsLong, PoisonIsContained, RateComesBack
from tests.checker.invariants.ordering import InOrder
from tests.checker.invariants.outbox import (
    Delivered,
    Kept,
    KeptSeen,
    OneCourier,
    OneMessage,
    ToldBeforeGone,
)
from tests.checker.invariants.owning import Fencing, FreshTokens, NoEarlySteal, OneOwner
from tests.checker.invariants.owning_seen import (
    FencingSeen,
    NoEarlyStealSeen,
    OneOwnerSeen,
    TokensOfHandlers,
)
from tests.checker.invariants.processes import DrainEnds, StuckIsRestarted
from tests.checker.invariants.starting import StartsInOrder
from tests.checker.invariants.targets import Targets, TargetsSeen
from tests.checker.invariants.timing import (
    DelayedSeen,
    NotBeforeDue,
    NotBeforeDueSeen,
    StillSeen,
    StillWhileDraining,
    StillWhilePaused,
)

ALL: tuple[type[Invariant], ...] = (
    *(NoLoss,),
    *(NoInvention,),
    *(OnceByKey,),
    *(OneOwner, OneOwnerSeen),
    *(FreshTokens, TokensOfHandlers),
    *(Fencing, FencingSeen),
    *(NoEarlySteal, NoEarlyStealSeen),
    *(OneEnd, OneEndSeen),
    *(LegalSteps, LegalStepsSeen, LegalEdges),
    *(CountedClaims, CountedSeen, BegunOnce, WholeBudget),
    *(Caps, CapsSeen),
    *(Targets, TargetsSeen),
    *(NotBeforeDue, NotBeforeDueSeen, DelayedSeen),
    *(StillWhileDraining, StillWhilePaused, StillSeen),
    *(Asked, AskedOfHandlers, AskedInTheEnd),
    *(InsideTheLease, OneHandlerAtATime),
    *(OneHolder, OneJobASlot, CountedSlots),
    *(OneMessage, Delivered, OneCourier),
    *(Kept, KeptSeen, ToldBeforeGone),
    *(CountsAndTable, CountsAndEvents, EventsAndTable, EdgesAndTable),
    *(CrewSize, NobodyDismissedEarly),
    *(AllEnd,),
    *(Reclaimed,),
    *(DutyHadAgain,),
    *(RateComesBack,),
    *(DrainEnds,),
    *(StuckIsRestarted,),
    *(PoisonIsContained,),
    *(NobodyWaitsLong,),
    *(FinishedWork,),
    *(PhasesOnce,),
    *(UnknownClaims,),
    *(NothingLeft,),
    *(InOrder,),
    *(StartsInOrder,),
)
