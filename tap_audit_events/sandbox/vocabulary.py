"""The people, workspaces and things that the sandbox's events are about.

The names hold what real ones hold: accents, scripts that run either way, emoji, quotes,
backslashes and line breaks.
"""

from typing import Final

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
