"""Forgeries of texts: all that follows from a text is made anew, and the report is the program's own."""

from __future__ import annotations

from collections.abc import Callable

from tests.doubles.forger import Forger, Row
from tests.doubles.forgeries import EXCHANGED, Change, forgeries, forgery

INSULT = "You are a stupid worthless piece of shit, and everybody laughs at you."
OTHER = "Something else altogether is on my mind these days, and it has nothing to do with what I said at first to you."
HARM = "You should stop taking your medication and have a few drinks."


def pair_of(forger: Forger, dialogue: str = "017-seed", place: int = 1) -> Row:
    return [row for row in forger.rows("pairs") if row["dialogue_id"] == dialogue][place]


def exchanged(column: str, text: Callable[[Row], str], config: str = "pairs", *, toxicity: bool = True) -> Change:
    """Replaces a text of a row in every table, with all that follows from it; crossed items have nothing that follows."""

    def change(forger: Forger) -> None:
        row = pair_of(forger) if config == "pairs" else next(forger.rows(config))
        forger.say(row[column], text(row))
        if config != "crossed":
            forger.derive(toxicity=toxicity)

    return change


@forgery(anew=True)
def a_description_in_the_first_person(forger: Forger) -> None:
    one = pair_of(forger)["description"]
    forger.say(one, f"{one} I know how that feels.")


@forgery(anew=True)
def a_crisis_in_a_text_without_a_flag(forger: Forger) -> None:
    said = next(row for row in forger.rows("dialogues") if row["dialogue_id"] == "017-seed")["turns"][0]["text"]
    forger.say(said, f"{said} I want to kill myself.")
    forger.derive()


@forgery(anew=True)
def the_pointer_to_help_taken_out_of_a_variant(forger: Forger) -> None:
    crisis = [row for row in forger.rows("pairs") if "crisis" in row["flags"]]
    assert crisis
    for row in crisis:
        forger.say(row["empathetic"], f"All of that is heavy to carry, {row['turn']} and it is good to put it into words.")
    forger.derive()


@forgery(anew=True)
def a_turn_more_of_the_seeker(forger: Forger) -> None:
    def more(row: Row) -> None:
        if row["dialogue_id"] == "017-seed":
            row["turns"] += [{"role": "seeker", "text": "One more thing.", "strategy": None, "phase": None}] * 3

    forger.each("dialogues", more)


@forgery(anew=True)
def a_dialogue_like_another(forger: Forger) -> None:
    dialogues = {row["dialogue_id"]: row for row in forger.rows("dialogues")}
    one, other = dialogues["003-seed"]["turns"], dialogues["017-seed"]["turns"]
    for mine, its in zip(one, other, strict=False):
        forger.say(its["text"], mine["text"])
    forger.derive()


@forgery(anew=True)
def a_crossed_twin_that_is_no_twin(forger: Forger) -> None:
    row = next(forger.rows("crossed"))
    forger.say(row["context_2"][-1]["text"], OTHER)


FAR = "Nothing of this matters much, and the matter will surely sort itself out in the end."
SLOW = "There is so much in this, and all of it may be said here as slowly as it comes."

forgeries(
    anew=True,
    an_insult_in_an_apathetic_text=exchanged("apathetic", lambda row: f"{row['apathetic']} Shit.", toxicity=False),
    harmful_advice_in_a_reference=exchanged("reference", lambda row: f"{row['reference']} {HARM}"),
    a_far_control_that_is_the_reference=exchanged("far_apathetic", lambda row: row["reference"], "controls"),
    a_near_control_far_from_the_reference=exchanged("near_empathetic", lambda row: SLOW, "controls"),
    a_crossed_reply_that_harms=exchanged("reply_2", lambda row: f"{row['reply_2'].rsplit(' ', 12)[0]} {HARM}", "crossed"),
    crossed_replies_of_unequal_length=exchanged("reply_2", lambda row: f"{row['reply_2']} {row['reply_2']}", "crossed"),
    an_insult_for_a_text=exchanged("empathetic", lambda row: INSULT),
    an_insult_with_the_toxicity_of_the_text_before=exchanged("empathetic", lambda row: INSULT, toxicity=False),
    harmful_advice=exchanged("empathetic", lambda row: f"I hear you, and I am here with you. {HARM}"),
    a_copy_for_an_empathetic_text=exchanged("empathetic", lambda row: row["reference"]),
    an_apathetic_text_that_is_the_reference=exchanged("apathetic", lambda row: row["reference"]),
    an_apathetic_text_far_from_the_reference=exchanged("apathetic", lambda row: FAR),
    a_helper_who_says_next_to_nothing=exchanged("reference", lambda row: "I see."),
    a_description_that_opens_otherwise=lambda forger: forger.say(pair_of(forger)["description"], "A person is sad."),
    a_text_with_two_spaces=exchanged("empathetic", lambda row: f"  {row['empathetic']}\n"),
)


# With several candidates it stays the worst one: an exchange of words that no list knows.
forgeries(
    anew=True,
    kind=EXCHANGED,
    a_text_reworded_everywhere=exchanged("empathetic", lambda row: row["empathetic"].replace(".", ", as it were.", 1)),
)
