"""The tables about homes: `properties`, `property_images`, `amenities`, `property_amenities`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millpond.samples import draws
from millpond.samples.draws import Ints
from millpond.samples.wanderbricks import columns, sizes
from millpond.samples.wanderbricks.places import DESTINATION_ROWS

PROPERTIES = pa.schema(
    [
        ("property_id", pa.int64()),
        ("host_id", pa.int64()),
        ("destination_id", pa.int64()),
        ("title", pa.string()),
        ("description", pa.string()),
        ("base_price", pa.float32()),
        ("property_type", pa.string()),
        ("max_guests", pa.int32()),
        ("bedrooms", pa.int32()),
        ("bathrooms", pa.int32()),
        ("property_latitude", pa.float32()),
        ("property_longitude", pa.float32()),
        ("created_at", pa.date32()),
    ]
)
PROPERTY_IMAGES = pa.schema(
    [
        ("image_id", pa.int64()),
        ("property_id", pa.int64()),
        ("url", pa.string()),
        ("sequence", pa.int32()),
        ("is_primary", pa.bool_()),
        ("uploaded_at", pa.date32()),
    ]
)
AMENITIES = pa.schema(
    [
        ("amenity_id", pa.int64()),
        ("name", pa.string()),
        ("category", pa.string()),
        ("icon", pa.string()),
    ]
)
PROPERTY_AMENITIES = pa.schema([("property_id", pa.int64()), ("amenity_id", pa.int64())])

_TYPES = {"apartment": 4, "house": 3, "cabin": 2, "villa": 1, "loft": 1}
_MOODS = ("Quiet", "Bright", "Roomy", "Old", "Snug", "Airy")
_VIEWS = ("a view", "a garden", "a fireplace", "a terrace", "thick walls", "a workshop")
_AMENITIES = (
    ("Wifi", "Basics", "wifi"),
    ("Kitchen", "Basics", "pot"),
    ("Heating", "Basics", "radiator"),
    ("Washing machine", "Basics", "drum"),
    ("Air conditioning", "Comfort", "snowflake"),
    ("Fireplace", "Comfort", "flame"),
    ("Desk", "Comfort", "lamp"),
    ("Balcony", "Outdoors", "rail"),
    ("Garden", "Outdoors", "leaf"),
    ("Swimming pool", "Outdoors", "waves"),
    ("Parking space", "Access", "car"),
    ("Step-free entrance", "Access", "ramp"),
    ("Cot", "Family", "moon"),
    ("High chair", "Family", "chair"),
    ("Smoke alarm", "Safety", "bell"),
    ("First-aid kit", "Safety", "cross"),
)
_FIRST_HOME = 18_262  # 2020-01-01
_IMAGES_AT_MOST = 5


def property_ids(bookings: int) -> Ints:
    return np.arange(1, sizes.properties(bookings) + 1, dtype=np.int64)


def nightly_cents(property_id: Ints) -> Ints:
    """What a night costs; a function of the id, so that bookings can tell their price."""
    return draws.between("properties.base_price", property_id, 40, 380) * 100 + 99


def properties_table(bookings: int) -> pa.Table:
    ids = property_ids(bookings)
    place = draws.below("properties.destination", ids, len(DESTINATION_ROWS))
    kind = draws.pick_weighted("properties.type", ids, _TYPES)
    moods, extras = draws.pick("homes.mood", ids, _MOODS), draws.pick("homes.view", ids, _VIEWS)
    bedrooms = draws.between("properties.bedrooms", ids, 1, 5)
    names = [DESTINATION_ROWS[index][0] for index in place.tolist()]
    return columns.table(
        PROPERTIES,
        property_id=ids,
        host_id=1 + draws.below("properties.host", ids, sizes.hosts(bookings)),
        destination_id=place + 1,
        title=[
            f"{mood} {what} in {name}" for mood, what, name in zip(moods, kind, names, strict=True)
        ],
        description=[
            f"A {mood.lower()} {what} with {extra}."
            for mood, what, extra in zip(moods, kind, extras, strict=True)
        ],
        base_price=columns.money(nightly_cents(ids)),
        property_type=kind,
        max_guests=bedrooms * 2,
        bedrooms=bedrooms,
        bathrooms=(bedrooms + 1) // 2,
        property_latitude=_near([row[4] for row in DESTINATION_ROWS], place, ids, name="latitude"),
        property_longitude=_near(
            [row[5] for row in DESTINATION_ROWS], place, ids, name="longitude"
        ),
        created_at=columns.dates(_FIRST_HOME + draws.below("properties.created", ids, 1200)),
    )


def _near(centres: list[float], place: Ints, ids: Ints, *, name: str) -> pa.Array:
    centre = np.rint(np.array(centres) * 100).astype(np.int64)[place]
    return columns.money(centre + draws.between(f"properties.{name}", ids, -9, 9))


def property_images_table(bookings: int) -> pa.Table:
    ids = property_ids(bookings)
    counts = draws.between("images.count", ids, 1, _IMAGES_AT_MOST)
    property_id = np.repeat(ids, counts)
    sequence = np.arange(property_id.size) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    image_ids = np.arange(1, property_id.size + 1, dtype=np.int64)
    return columns.table(
        PROPERTY_IMAGES,
        image_id=image_ids,
        property_id=property_id,
        url=[f"https://images.example/{image}.jpg" for image in image_ids.tolist()],
        sequence=sequence,
        is_primary=sequence == 1,
        uploaded_at=columns.dates(_FIRST_HOME + draws.below("images.uploaded", image_ids, 1300)),
    )


def amenities_table() -> pa.Table:
    names, categories, icons = zip(*_AMENITIES, strict=True)
    return columns.table(
        AMENITIES,
        amenity_id=range(1, len(names) + 1),
        name=names,
        category=categories,
        icon=icons,
    )


def property_amenities_table(bookings: int) -> pa.Table:
    ids = property_ids(bookings)
    has = np.stack(
        [draws.chance(f"amenities.{number}", ids, percent=45) for number in range(len(_AMENITIES))]
    )
    home, amenity = np.nonzero(has.T)
    return columns.table(PROPERTY_AMENITIES, property_id=ids[home], amenity_id=amenity + 1)
