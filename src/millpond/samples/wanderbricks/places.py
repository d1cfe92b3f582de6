"""The tables `countries` and `destinations`, which do not grow with the scale."""

from __future__ import annotations

import pyarrow as pa

from millpond.samples.wanderbricks import columns

COUNTRIES = pa.schema(
    [("country", pa.string()), ("country_code", pa.string()), ("continent", pa.string())]
)
DESTINATIONS = pa.schema(
    [
        ("destination_id", pa.int64()),
        ("destination", pa.string()),
        ("country", pa.string()),
        ("state_or_province", pa.string()),
        ("state_or_province_code", pa.string()),
        ("description", pa.string()),
    ]
)

COUNTRY_ROWS = (
    ("Argentina", "AR", "South America"),
    ("Australia", "AU", "Oceania"),
    ("Brazil", "BR", "South America"),
    ("Canada", "CA", "North America"),
    ("Croatia", "HR", "Europe"),
    ("Denmark", "DK", "Europe"),
    ("Egypt", "EG", "Africa"),
    ("France", "FR", "Europe"),
    ("Germany", "DE", "Europe"),
    ("Greece", "GR", "Europe"),
    ("India", "IN", "Asia"),
    ("Italy", "IT", "Europe"),
    ("Japan", "JP", "Asia"),
    ("Kenya", "KE", "Africa"),
    ("Mexico", "MX", "North America"),
    ("Morocco", "MA", "Africa"),
    ("New Zealand", "NZ", "Oceania"),
    ("Norway", "NO", "Europe"),
    ("Portugal", "PT", "Europe"),
    ("South Africa", "ZA", "Africa"),
    ("South Korea", "KR", "Asia"),
    ("Spain", "ES", "Europe"),
    ("United Kingdom", "GB", "Europe"),
    ("United States", "US", "North America"),
)
COUNTRY_NAMES = tuple(name for name, _, _ in COUNTRY_ROWS)

# Name, country, state or province, its code, latitude, longitude, what people come for.
DESTINATION_ROWS = (
    ("Bariloche", "Argentina", "Rio Negro", "R", -41.13, -71.31, "lakes, forests and ski slopes"),
    ("Byron Bay", "Australia", "New South Wales", "NSW", -28.64, 153.61, "surf and a lighthouse"),
    ("Paraty", "Brazil", "Rio de Janeiro", "RJ", -23.22, -44.71, "a harbour town of white walls"),
    ("Banff", "Canada", "Alberta", "AB", 51.18, -115.57, "peaks over green water"),
    ("Rovinj", "Croatia", "Istria", "18", 45.08, 13.64, "an old town above the sea"),
    ("Skagen", "Denmark", "North Jutland", "81", 57.72, 10.58, "two seas that meet on a sandbank"),
    ("Dahab", "Egypt", "South Sinai", "JS", 28.51, 34.51, "reefs within reach of the shore"),
    ("Annecy", "France", "Haute-Savoie", "74", 45.90, 6.13, "canals and a lake to swim in"),
    ("Fuessen", "Germany", "Bavaria", "BY", 47.57, 10.70, "castles at the foot of the Alps"),
    ("Naxos", "Greece", "South Aegean", "L", 37.10, 25.38, "long beaches and mountain villages"),
    ("Udaipur", "India", "Rajasthan", "RJ", 24.58, 73.71, "palaces mirrored in a lake"),
    ("Matera", "Italy", "Basilicata", "77", 40.67, 16.61, "houses cut into the rock"),
    ("Kanazawa", "Japan", "Ishikawa", "17", 36.56, 136.66, "gardens and a market hall"),
    ("Lamu", "Kenya", "Lamu County", "21", -2.27, 40.90, "lanes too narrow for cars"),
    ("Valladolid", "Mexico", "Yucatan", "YUC", 20.69, -88.20, "sinkholes of clear water"),
    (
        "Essaouira",
        "Morocco",
        "Marrakesh-Safi",
        "07",
        31.51,
        -9.77,
        "wind, walls and fish on the grill",
    ),
    ("Wanaka", "New Zealand", "Otago", "OTA", -44.70, 169.13, "a lake with a lonely tree"),
    ("Svolvaer", "Norway", "Nordland", "18", 68.23, 14.57, "fishing huts below steep rock"),
    ("Tavira", "Portugal", "Faro", "08", 37.13, -7.65, "islands of sand a ferry ride away"),
    ("Knysna", "South Africa", "Western Cape", "WC", -34.04, 23.05, "a lagoon and old trees"),
    (
        "Gyeongju",
        "South Korea",
        "North Gyeongsang",
        "47",
        35.86,
        129.22,
        "burial mounds in the grass",
    ),
    ("Ronda", "Spain", "Andalusia", "AN", 36.74, -5.17, "a bridge over a gorge"),
    (
        "St Ives",
        "United Kingdom",
        "Cornwall",
        "CON",
        50.21,
        -5.48,
        "painters' light and small beaches",
    ),
    ("Moab", "United States", "Utah", "UT", 38.57, -109.55, "arches of red stone"),
)


def countries_table() -> pa.Table:
    names, codes, continents = zip(*COUNTRY_ROWS, strict=True)
    return columns.table(COUNTRIES, country=names, country_code=codes, continent=continents)


def destinations_table() -> pa.Table:
    return columns.table(
        DESTINATIONS,
        destination_id=range(1, len(DESTINATION_ROWS) + 1),
        destination=[row[0] for row in DESTINATION_ROWS],
        country=[row[1] for row in DESTINATION_ROWS],
        state_or_province=[row[2] for row in DESTINATION_ROWS],
        state_or_province_code=[row[3] for row in DESTINATION_ROWS],
        description=[f"## {row[0]}\n\nKnown for **{row[6]}**.\n" for row in DESTINATION_ROWS],
    )
