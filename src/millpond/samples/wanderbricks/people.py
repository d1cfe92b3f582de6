"""The tables `users`, `hosts` and `employees`. Names are made up, mail domains are `.example`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millpond.samples import draws
from millpond.samples.draws import Ints
from millpond.samples.wanderbricks import columns, sizes
from millpond.samples.wanderbricks.places import COUNTRY_NAMES

USERS = pa.schema(
    [
        ("user_id", pa.int64()),
        ("email", pa.string()),
        ("name", pa.string()),
        ("country", pa.string()),
        ("user_type", pa.string()),
        ("created_at", columns.TIMESTAMP),
        ("is_business", pa.bool_()),
        ("company_name", pa.string()),
    ]
)
HOSTS = pa.schema(
    [
        ("host_id", pa.int64()),
        ("name", pa.string()),
        ("email", pa.string()),
        ("phone", pa.string()),
        ("is_verified", pa.bool_()),
        ("is_active", pa.bool_()),
        ("rating", pa.float32()),
        ("country", pa.string()),
        ("joined_at", pa.date32()),
    ]
)
EMPLOYEES = pa.schema(
    [
        ("employee_id", pa.int64()),
        ("host_id", pa.int64()),
        ("name", pa.string()),
        ("role", pa.string()),
        ("email", pa.string()),
        ("phone", pa.string()),
        ("country", pa.string()),
        ("joined_at", pa.date32()),
        ("end_service_date", pa.date32()),
        ("is_currently_employed", pa.bool_()),
    ]
)

_GIVEN = (
    "Ada",
    "Bo",
    "Chidi",
    "Dara",
    "Elif",
    "Femi",
    "Gita",
    "Hugo",
    "Ines",
    "Jun",
    "Kofi",
    "Lea",
)
_FAMILY = ("Abara", "Berg", "Costa", "Diaz", "Eriksen", "Fontaine", "Goto", "Haas", "Ito", "Jansen")
_ROLES = {"cleaner": 4, "caretaker": 3, "manager": 1, "receptionist": 2}
_FIRST_USER = 1_577_836_800  # 2020-01-01T00:00:00Z
_FIRST_DAY = 18_262  # the same, in days


def users_table(bookings: int) -> pa.Table:
    ids = _ids(sizes.users(bookings))
    business = draws.chance("users.business", ids, percent=15)
    names = _names("users", ids)
    companies = [
        f"{name.split()[1]} Travel" if is_company else None
        for name, is_company in zip(names, business.tolist(), strict=True)
    ]
    return columns.table(
        USERS,
        user_id=ids,
        email=_emails(names, ids, domain="mail.example"),
        name=names,
        country=draws.pick("users.country", ids, COUNTRY_NAMES),
        user_type=["business" if is_company else "individual" for is_company in business.tolist()],
        created_at=columns.moments(_FIRST_USER + draws.below("users.created", ids, 1200 * 86_400)),
        is_business=business,
        company_name=companies,
    )


def hosts_table(bookings: int) -> pa.Table:
    ids = _ids(sizes.hosts(bookings))
    names = _names("hosts", ids)
    return columns.table(
        HOSTS,
        host_id=ids,
        name=names,
        email=_emails(names, ids, domain="hosts.example"),
        phone=_phones("hosts", ids),
        is_verified=draws.chance("hosts.verified", ids, percent=80),
        is_active=draws.chance("hosts.active", ids, percent=90),
        rating=columns.money(draws.between("hosts.rating", ids, 10, 50) * 10),
        country=draws.pick("hosts.country", ids, COUNTRY_NAMES),
        joined_at=columns.dates(_FIRST_DAY + draws.below("hosts.joined", ids, 1200)),
    )


def employees_table(bookings: int) -> pa.Table:
    ids = _ids(2 * sizes.hosts(bookings))
    names = _names("employees", ids)
    joined = _FIRST_DAY + draws.below("employees.joined", ids, 1200)
    employed = draws.chance("employees.employed", ids, percent=75)
    return columns.table(
        EMPLOYEES,
        employee_id=ids,
        host_id=1 + draws.below("employees.host", ids, sizes.hosts(bookings)),
        name=names,
        role=draws.pick_weighted("employees.role", ids, _ROLES),
        email=_emails(names, ids, domain="staff.example"),
        phone=_phones("employees", ids),
        country=draws.pick("employees.country", ids, COUNTRY_NAMES),
        joined_at=columns.dates(joined),
        end_service_date=columns.dates(
            joined + draws.between("employees.served", ids, 30, 700), mask=employed
        ),
        is_currently_employed=employed,
    )


def _ids(count: int) -> Ints:
    return np.arange(1, count + 1, dtype=np.int64)


def _names(kind: str, ids: Ints) -> list[str]:
    given = draws.pick(f"{kind}.given_name", ids, _GIVEN)
    family = draws.pick(f"{kind}.family_name", ids, _FAMILY)
    return [f"{first} {last}" for first, last in zip(given, family, strict=True)]


def _emails(names: list[str], ids: Ints, *, domain: str) -> list[str]:
    return [
        f"{name.lower().replace(' ', '.')}.{number}@{domain}"
        for name, number in zip(names, ids.tolist(), strict=True)
    ]


def _phones(kind: str, ids: Ints) -> list[str]:
    return [f"+00 555 {digits:07}" for digits in draws.below(f"{kind}.phone", ids, 10**7).tolist()]
