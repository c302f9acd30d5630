"""Words as the index holds them, and questions that are never a fault of syntax."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.memory_words import LONGEST, TERMS, is_cjk, match, split, terms, tokens


def test_chinese_becomes_characters_and_pairs() -> None:
    assert split("我女儿在北京 likes Wi-Fi") == "我 女 儿 在 北 京 我女 女儿 儿在 在北 北京 likes wi fi"


def test_a_word_that_is_too_long_is_none() -> None:
    assert split("x" * (LONGEST + 1) + " ok") == "ok"
    assert terms("x" * (LONGEST + 1)) == ()


def test_other_scripts_and_widths_are_read_alike() -> None:
    assert split("ＡＢＣ カタ 한국 豈 𠀀") == split("abc カタ 한국 豈 𠀀")
    assert [is_cjk(each) for each in "あ㐀中한豈𠀀aé"] == [True] * 6 + [False] * 2


def test_what_says_little_is_not_looked_for() -> None:
    assert terms("What is the wifi password at Elmira's?") == ("wifi", "password", "elmira")
    assert terms("北京的天气怎么样") == ("北京", "京的", "的天", "天气", "气怎", "么样")


def test_where_nothing_else_is_asked_what_says_little_counts() -> None:
    assert terms("who are you") == ("who", "are", "you")
    assert terms("我的") == ("我的",)
    assert terms("猫") == ("猫",)
    assert terms("") == ()


def test_a_question_has_so_many_words() -> None:
    assert len(terms(" ".join(f"word{at}" for at in range(100)))) == TERMS


def test_tokens_are_letters_or_wide_characters() -> None:
    assert (tokens("abcdefgh"), tokens("北京abcd"), tokens("")) == (2, 3, 0)


@pytest.fixture
def table() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize='porter unicode61 remove_diacritics 2')")
    for text in ("我女儿在北京学钢琴", "李先生下周开会", "无线网络的密码是 tulip", "The meetings were cancelled"):
        connection.execute("INSERT INTO words VALUES (?)", (split(text),))
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("question", "row"), [("女儿", 1), ("北京", 1), ("开会", 2), ("无线 tulip", 3), ("cancel the meeting", 4)]
)
def test_words_of_two_characters_are_found(table: sqlite3.Connection, question: str, row: int) -> None:
    found = table.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank", (match(question),)).fetchall()
    assert found[0] == (row,)


@given(st.text(max_size=80))
def test_no_question_is_a_fault_of_syntax(text: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")
    if asked := match(text + ' NEAR("a AND* ^col: -x'):
        assert connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (asked,)).fetchall() == []
    connection.close()
