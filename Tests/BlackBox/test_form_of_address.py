"""Each language addresses a person in one form throughout. Needs no server."""

import json
import pathlib
import re

import pytest

TEMPLATES = pathlib.Path(__file__).resolve().parents[2] / "Sources/Texts/Templates"
# The words of the form that a language does not use.
OTHER_FORM = {
    "de": r"\b([dD]u|[dD]ir|[dD]ich|[dD]ein(e[mnrs]?)?|[eE]uch|[eE]uer|[eE]ure[mnrs]?)\b",
    "es": r"\b(tú|tus?|te|ti|has|eres|tienes|puedes|necesitas)\b|\b(Confirma|Escribe|Abre|Elige|Inicia|Mira|Pide|Vuelve a {client})\b|Escríbel[ao]",
    "fr": r"\b(tu|toi|ton|tes|te)\b",
    "it": r"\b(lei|Lei)\b|\b([aA]l|[dD]el|[iI]l) suo (account|dispositivo)|\bi suoi dispositivi|\b(Acceda|Apra|Inserisca|Scelga|Torni|chieda)\b|\bse ha già|\bSe ha già",
    "nl": r"(?<![-\w])([uU]|[uU]w)(?![-\w])",
    "pl": r"\b(Pan|Pani|Pana|Państwo|Państwa)\b",
    "pt-BR": r"\b(tu|teus?|tuas?|ti|contigo|tens|podes)\b",
    "tr": r"\b(sen|senin|sana|seni)\b",
}


@pytest.mark.parametrize("language", OTHER_FORM)
def test_a_language_has_one_form_of_address(language):
    """Dutch and Italian say the informal one, German, French, Spanish and Turkish the formal one."""
    texts = json.loads((TEMPLATES / f"{language}.json").read_text())
    assert {key: text for key, text in texts.items() if re.search(OTHER_FORM[language], text)} == {}
