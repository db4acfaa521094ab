"""All targets, by name."""

from __future__ import annotations

from fuzz import models, readers, service, vocabularies
from fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target for target in (*readers.TARGETS, *models.TARGETS, *vocabularies.TARGETS, *service.TARGETS)
}
