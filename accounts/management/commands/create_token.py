"""`manage.py create_token USER --name N [--scopes read,write]`: prints a token and nothing else."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import DEFAULT_SCOPES, Scope, User
from accounts.services import token_create
from web.errors import ApiError


class Command(BaseCommand):
    help = "Print a new API token of a user: this once, it is not kept."
    requires_system_checks: list[str] = []  # noqa: RUF012  # the base class's own type

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # What a token may do is nothing to guess at: no option is taken for a longer one.
        return super().create_parser(prog_name, subcommand, allow_abbrev=False, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="username of the owner")
        parser.add_argument("--name", required=True, help="what the token is for")
        parser.add_argument(
            "--scopes",
            action="extend",
            type=_listed,
            metavar="SCOPES",
            help=f"some of {','.join(Scope.values)}; given again, it adds to them "
            f"(default: {','.join(DEFAULT_SCOPES)})",
        )

    def handle(self, *args: Any, **options: Any) -> str:
        owner = User.objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"There is no user {options['user']!r}.")
        scopes = DEFAULT_SCOPES if options["scopes"] is None else options["scopes"]
        name = options["name"].strip()
        if not 1 <= len(name) <= 100 or "\0" in name:
            raise CommandError("Give a name of 1 to 100 characters.")
        try:
            _, secret = token_create(owner=owner, name=name, scopes=scopes)
        except ApiError as error:
            raise CommandError(error.message) from error
        return secret


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
