"""The content of generated events: action types with their details, people, workspaces, files.

interface.md shows one action type, `workspace_create`; the others are invented, as the set is
extensible. Names contain what real ones do: accents, scripts of both directions, emoji, quotes,
backslashes and line breaks.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

PEOPLE: Final = (
    "Ada Okonkwo", "Zoë Brontë", "Søren Ångström", "François Lefèvre", "Jürgen Weiß",
    "José Muñoz", "Łukasz Wójcik", "Nguyễn Thị Hồng", "Ayşe Gündoğan", "Παναγιώτης Νικολάου",
    "Дмитро Шевченко", "王小明", "佐藤 花子", "김민준", "محمد الأحمد", "דנה לוי", "प्रिया शर्मा",
    "สมชาย ใจดี", "Sinéad O'Brien", 'Robert "Bob" Tables', "Maya 🌱 Green", "X Æ", "Ann-Kathrin",
    "Muhammad Hassan al-Rashid ibn Abdullah", "Lee", "Ìfẹ́ Adébáyọ̀", "Chloé 👩🏽‍💻 Martin",
)  # fmt: skip

WORKSPACES: Final = (
    "Research & Development", "Vertrieb Süd", "経営企画", "Ops / On-call", "الموارد البشرية",
    "C:\\shared\\finance", "Café ☕", 'The "new" website', "Legal", "Marketing\nEMEA", "Q3 <draft>",
    "100% remote", "Größenordnung", "数据平台", "a+b=c; x,y",
)  # fmt: skip

CHANNELS: Final = (
    "general", "random", "incidents", "réunions", "お知らせ", "deploys-🚀", "שאלות", "tab\there",
)  # fmt: skip

FILES: Final = (
    "budget 2024.xlsx", "Übersicht.pdf", "設計書_v2.docx", "photo (1).jpeg", "naïve résumé.pdf",
    "\\\\server\\export.csv", "notes\u2028final.txt", "report.tar.gz", "emoji 🎉🎉.png",
)  # fmt: skip

USER_AGENTS: Final = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_4) AppleWebKit/605.1.15",
    "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0",
    "mobile-app/8.12.0 (iOS 17.4.1)",
)

ROLES: Final = ("member", "guest", "editor", "administrator")
SETTINGS: Final = ("retentionDays", "allowGuests", "defaultLocale", "twoFactor", "logoUrl")
SCOPES: Final = ("channels:read", "channels:write", "files:read", "organization:audit_events_read")
CHANGES: Final = (True, False, None, 30, 365, "de-CH", "ja", 0.75)
"""What a setting may be before and after a change."""


class Action(NamedTuple):
    """An action type, its relative frequency, its entity type and what generates its details."""

    type: str
    weight: int
    entity_type: str
    details: Callable[[Random], dict[str, Any]]


ACTIONS: Final = (
    Action("user_sign_in", 40, "user", lambda random: {
        "method": random.choice(("saml", "password", "oauth")),
        "secondFactor": random.random() < 0.7,
        "userAgent": random.choice(USER_AGENTS),
    }),
    Action("file_download", 24, "channel", lambda random: {
        "file": {
            "name": random.choice(FILES),
            "sizeBytes": random.randrange(1, 2**33),
            "checksum": {"sha1": f"{random.getrandbits(160):040x}"},
        },
        "durationSeconds": random.randrange(1, 60_000) / 1000,
    }),
    Action("channel_create", 9, "channel", lambda random: {
        "fields": {"name": random.choice(CHANNELS), "private": random.random() < 0.3},
    }),
    Action("user_invite", 8, "user", lambda random: {
        "emails": [f"guest{random.randrange(1000)}@example.org" for _ in
                   range(random.randint(1, 3))],
        "role": random.choice(ROLES),
        "expiresInHours": 72,
    }),
    Action("workspace_settings_update", 6, "workspace", lambda random: {
        "changes": [
            {"field": name, "before": random.choice(CHANGES), "after": random.choice(CHANGES)}
            for name in random.sample(SETTINGS, 2)
        ],
    }),
    Action("user_role_update", 4, "user", lambda random: {
        "fields": {"role": dict(zip(("before", "after"), random.sample(ROLES, 2), strict=True))},
    }),
    Action("channel_archive", 4, "channel", lambda random: {
        "reason": random.choice((None, "", "finished", "moved to “projects”")),
    }),
    Action("access_token_create", 2, "user", lambda random: {
        "fields": {
            "name": "CI",
            "scopes": random.sample(SCOPES, random.randint(1, 3)),
            "expiresAt": None,
        },
    }),
    Action("workspace_create", 2, "workspace", lambda random: {
        "fields": {"name": random.choice(WORKSPACES)},
    }),
    Action("organization_export", 1, "organization", lambda _: {}),
)  # fmt: skip
