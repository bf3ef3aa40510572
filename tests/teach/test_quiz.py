"""The quiz of a week: what Moodle is given is what the chapter asks, and a wrong name is told what there is."""

import re

import pytest
from teach import quiz

PAGE = """
:::::{admonition} Check yourself
:class: selfcheck

Is $2^{3} = \\nu$ `x: y`, as [a page](x.md) says?

:::{admonition} A. It *is*: {ref}`see <sec-x>`.
:class: dropdown answer

Not this: because $a < b$.
:::

:::{admonition} B. No.
:class: dropdown answer

Right: 50 ~ 60.
:::
::::
"""


def test_links_become_words_and_every_sign_of_gifts_own_is_escaped(tmp_path):
    (tmp_path / "x.md").write_text(PAGE)
    assert quiz.write_gift("x", tmp_path).splitlines() == [
        r"::x 1::[html]Is \\(2^\{3\} \= \\nu\\) <code>x\: y</code>, as a page says? {",
        r"~It <em>is</em>\: see.#Because \\(a &lt; b\\).",
        r"=No.#50 \~ 60.",
        "}",
    ]


def test_every_option_of_the_books_self_checks_is_read():
    for path in quiz.BOOK.glob("*.md"):
        text = path.read_text(encoding="utf8")
        if quiz.QUESTION.search(text):
            asked = text.count(":class: dropdown answer\n")
            assert len(re.findall("^[=~]", quiz.write_gift(path.stem), re.MULTILINE)) == asked, path.stem


def test_a_chapter_without_a_self_check_is_refused(capsys):
    assert quiz.main(["nothing"]) == 1
    assert "no self-check of 'nothing'; wanted: one of digits, engines" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        quiz.main([])
