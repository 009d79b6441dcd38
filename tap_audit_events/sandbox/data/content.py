"""The content of generated events: action types with their details, people, workspaces, files.

interface.md shows one action type, `workspace_create`; the others are invented, as the set is
extensible. Names contain what real ones do: accents, scripts of both directions, emoji, quotes,
backslashes and line breaks.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

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

Details: TypeAlias = dict[str, Any]


class Action(NamedTuple):
    """An action type, its relative frequency, its entity type and what generates its details."""

    type: str
    weight: int
    entity_type: str
    details: Callable[[Random], Details]


def _workspace_create(random: Random) -> Details:
    return {"fields": {"name": random.choice(WORKSPACES)}}


def _workspace_settings_update(random: Random) -> Details:
    changed = random.sample(SETTINGS, 2)
    return {"changes": [{"field": name, **_change(random)} for name in changed]}


def _change(random: Random) -> Details:
    values = (True, False, None, 30, 365, "de-CH", "ja", 0.75)
    return {"before": random.choice(values), "after": random.choice(values)}


def _user_sign_in(random: Random) -> Details:
    return {
        "method": random.choice(("saml", "password", "oauth")),
        "secondFactor": random.random() < 0.7,
        "userAgent": random.choice(USER_AGENTS),
    }


def _user_invite(random: Random) -> Details:
    guests = [f"guest{random.randrange(1000)}@example.org" for _ in range(random.randint(1, 3))]
    return {"emails": guests, "role": random.choice(ROLES), "expiresInHours": 72}


def _user_role_update(random: Random) -> Details:
    before, after = random.sample(ROLES, 2)
    return {"fields": {"role": {"before": before, "after": after}}}


def _channel_create(random: Random) -> Details:
    return {"fields": {"name": random.choice(CHANNELS), "private": random.random() < 0.3}}


def _channel_archive(random: Random) -> Details:
    return {"reason": random.choice((None, "", "finished", "moved to “projects”"))}


def _file_download(random: Random) -> Details:
    name, size = random.choice(FILES), random.randrange(1, 2**33)
    checksum = f"{random.getrandbits(160):040x}"
    return {
        "file": {"name": name, "sizeBytes": size, "checksum": {"sha1": checksum}},
        "durationSeconds": random.randrange(1, 60_000) / 1000,
    }


def _access_token_create(random: Random) -> Details:
    scopes = random.sample(SCOPES, random.randint(1, 3))
    return {"fields": {"name": "CI", "scopes": scopes, "expiresAt": None}}


def _organization_export(_: Random) -> Details:
    return {}


ACTIONS: Final = (
    Action("user_sign_in", 40, "user", _user_sign_in),
    Action("file_download", 24, "channel", _file_download),
    Action("channel_create", 9, "channel", _channel_create),
    Action("user_invite", 8, "user", _user_invite),
    Action("workspace_settings_update", 6, "workspace", _workspace_settings_update),
    Action("user_role_update", 4, "user", _user_role_update),
    Action("channel_archive", 4, "channel", _channel_archive),
    Action("access_token_create", 2, "user", _access_token_create),
    Action("workspace_create", 2, "workspace", _workspace_create),
    Action("organization_export", 1, "organization", _organization_export),
)
