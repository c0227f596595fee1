"""How a tenant calls the addresses that rows show: from configuration, when they are read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from control import labels
from control.labels import NO_LABEL, Label
from control.store import ControlStore
from control.subjects import SubjectRow

Labels = Mapping[str, Label]
"""What is known of stored addresses, of each one."""


@dataclass(frozen=True, slots=True)
class Names:
    """How the tenant of a subject calls addresses on its ledger."""

    store: ControlStore
    subject: SubjectRow

    def of(self, addresses: Collection[str]) -> Labels:
        """Return the labels of stored addresses, in one query; of every address one, if an empty one."""
        wanted = set(addresses)
        with self.store.read() as session:
            known = labels.read(session, self.subject.tenant_id, self.subject.ledger_id, wanted)
        return {address: known.get(address, NO_LABEL) for address in wanted}

    def tracked(self, wallet_ids: Collection[str]) -> set[str]:
        """Return which of the tenant's wallets are tracked."""
        if not wallet_ids:
            return set()
        with self.store.read() as session:
            return labels.tracked_wallets(session, self.subject.tenant_id, wallet_ids)

    def matching(self, q: str | None) -> tuple[str, ...]:
        """Return the stored addresses whose name has a text in it.

        Raises:
            Invalid: on 'q'.
        """
        if q is None:
            return ()
        with self.store.read() as session:
            return tuple(labels.addresses_named(session, self.subject.tenant_id, self.subject.ledger_id, q))
