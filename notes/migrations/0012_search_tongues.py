"""What terms mean is read in all of the owner's languages, whichever the words are to be read in:
a phrase is its words side by side in any of them."""

from importlib import import_module

from django.db import migrations

search_read = import_module("notes.migrations.0006_search_read")

BEFORE = "CASE tongue WHEN '' THEN languages ELSE ARRAY[tongue] END"
AFTER = """CASE WHEN tongue = '' OR tongue = ANY (languages) THEN languages
        ELSE languages || tongue END"""

_start = search_read.FUNCTIONS.index("CREATE FUNCTION notes_search_read(")
READ = search_read.FUNCTIONS[_start : search_read.FUNCTIONS.index("END $$;", _start)] + "END $$;"
READ = READ.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")


class Migration(migrations.Migration):
    dependencies = [("notes", "0011_search_signs")]

    operations = [migrations.RunSQL(READ.replace(BEFORE, AFTER), READ)]
