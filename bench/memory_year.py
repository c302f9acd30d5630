"""A year of one person's chats, made up: 50,000 messages, 400 facts among them, and a question for each fact.

Half of it is English, half Chinese. A question is one of two kinds: `near` names the matter in other words around it,
`far` says it without the words of the fact; what both share at most is the name of whom it is about, who is also
named in hundreds of other messages. No question holds the answer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

NAMES_EN: Final = [
    "Elmira", "Tobias", "Saskia", "Ronan", "Priya", "Mateus", "Ingrid", "Oluwaseun", "Beatriz", "Kenji",
    "Yolanda", "Piotr", "Farah", "Lorcan", "Agnes", "Dmitri", "Halima", "Gustavo", "Wren", "Isolde", "Caspian",
    "Noor", "Thaddeus", "Mireille",
]  # fmt: skip
NAMES_ZH: Final = [
    "陈雨桐", "李建国", "王思远", "张晓梅", "刘志强", "赵婉清", "孙浩然", "周雅琴", "吴嘉怡", "郑明辉",
    "冯丽娟", "许文博", "何静怡", "高俊杰", "林若溪", "罗天佑", "梁诗涵", "宋子轩", "唐美玲", "韩立新",
    "曹佳宁", "彭少华", "董秋菊", "袁振东",
]  # fmt: skip

Fact = tuple[str, str, str, tuple[str, ...]]
"""What is said, a near question, a far question, and the values that `{v}` takes."""

FACTS_EN: Final[tuple[Fact, ...]] = (
    ("{n} is allergic to {v}, found out at the clinic today.", "What is {n} allergic to?",
     "Which food must never be on the table when {n} comes for dinner?",
     ("peanuts", "shellfish", "sesame", "strawberries", "celery", "cashews", "mustard", "lupin")),
    ("{n}'s birthday is on {v}.", "When is the birthday of {n}?", "Which day do I need a present and a cake for {n}?",
     ("3 March", "19 August", "27 November", "8 January", "14 May", "30 June", "11 October", "5 April")),
    ("The wifi password at {n}'s place is {v}.", "What was the wifi password at {n}'s?",
     "How do I get online when I stay with {n}?",
     ("tulip-4471", "maple-9023", "cobalt-1187", "ember-6650", "fjord-3308", "quartz-7214",
      "saffron-5582", "onyx-2096")),
    ("{n} moved to {v} for the new job.", "Where did {n} move to?", "In which city does {n} live these days?",
     ("Lisbon", "Rotterdam", "Kraków", "Montreal", "Adelaide", "Tallinn", "Bologna", "Cork")),
    ("{n} plays the {v} in a small band.", "What does {n} play in the band?", "Which instrument is {n} good at?",
     ("cello", "trombone", "banjo", "oboe", "accordion", "drums", "harp", "clarinet")),
    ("I lent {n} my {v} last weekend.", "What did I lend {n}?", "Which of my things does {n} still have to give back?",
     ("pressure washer", "tent", "sewing machine", "drill", "ice cream maker", "telescope", "kayak", "projector")),
    ("{n} drives a {v} now.", "What does {n} drive?", "What sort of car should I look for when {n} picks me up?",
     ("green Škoda", "grey Volvo", "red Fiat", "white Tesla", "blue Peugeot", "black Saab",
      "yellow Mini", "silver Kia")),
    ("{n}'s dog is called {v}.", "What is the dog of {n} called?", "What was the name of that puppy of {n}'s?",
     ("Biscuit", "Wotan", "Pixel", "Mango", "Captain", "Nutmeg", "Sprocket", "Luna")),
    ("{n} takes {v} for blood pressure every morning.", "What does {n} take for blood pressure?",
     "Which medicine should I pack for {n}?",
     ("ramipril", "amlodipine", "losartan", "bisoprolol", "candesartan", "lisinopril", "atenolol", "nebivolol")),
    ("{n} works as a {v} at the harbour.", "What does {n} work as?", "What is the profession of {n}?",
     ("crane operator", "customs clerk", "pilot", "welder", "diver", "dispatcher", "electrician", "surveyor")),
    ("The gate code of {n}'s building is {v}.", "What is the code for the gate of {n}'s building?",
     "What do I have to type in downstairs to visit {n}?",
     ("7715", "0482", "3391", "6027", "9148", "2563", "8806", "1379")),
    ("{n} wears shoe size {v}.", "What shoe size does {n} wear?", "If I buy boots for {n}, how big must they be?",
     ("38", "44", "41", "36", "46", "39", "43", "37")),
    ("{n} is writing a thesis about {v}.", "What is the thesis of {n} about?", "What is {n} researching at university?",
     ("glacier moss", "medieval tolls", "bat sonar", "rural trams", "tidal locks", "beet sugar", "sign languages",
      "roof gardens")),
    ("{n} can't stand {v}, never again.", "What can {n} not stand?", "What does {n} hate?",
     ("karaoke", "cilantro", "escape rooms", "jazz flute", "camping", "musicals", "oysters", "golf")),
    ("{n} got engaged to {v} at the lake.", "Who did {n} get engaged to?", "Whom is {n} going to marry?",
     ("Rasmus", "Valentina", "Cormac", "Leopoldine", "Hamza", "Sunniva", "Enzo", "Tamsin")),
    ("{n}'s flight lands at {v} on Friday.", "When does the flight of {n} land?",
     "At what time must I be at the airport to fetch {n}?",
     ("06:40", "23:15", "14:05", "17:50", "09:25", "21:30", "12:10", "19:45")),
    ("I owe {n} {v} for the concert tickets.", "How much do I owe {n} for the tickets?",
     "What sum must I transfer to {n} to be even?",
     ("45 euros", "112 euros", "68 euros", "27 euros", "94 euros", "53 euros", "131 euros", "76 euros")),
    ("{n} recommended the dentist {v}.", "Which dentist did {n} recommend?",
     "Who was the tooth doctor that {n} spoke so well of?",
     ("Dr Abernathy", "Dr Okonkwo", "Dr Lindqvist", "Dr Castellanos", "Dr Marchetti", "Dr Hruska", "Dr Vandermeer",
      "Dr Yilmaz")),
    ("{n}'s daughter started {v} lessons.", "Which lessons did the daughter of {n} start?",
     "What hobby has the kid of {n} taken up?",
     ("fencing", "archery", "ballet", "judo", "sailing", "chess", "riding", "pottery")),
    ("{n} keeps the spare key {v}.", "Where does {n} keep the spare key?",
     "How do I get into the house when {n} is away?",
     ("under the flowerpot", "in the meter box", "behind the shutter", "with the florist", "in the birdhouse",
      "on the lintel", "inside the mailbox", "beneath the frog")),
    ("{n} wants to be paid through {v} only.", "How does {n} want to be paid?",
     "Which service do I use to send money to {n}?",
     ("Wise", "Revolut", "PayPal", "Twint", "Bizum", "Swish", "Klarna", "Venmo")),
    ("{n} broke the {v} while skiing.", "What did {n} break while skiing?", "Which injury did {n} have in winter?",
     ("left wrist", "collarbone", "right ankle", "thumb", "shin", "elbow", "two ribs", "kneecap")),
    ("{n}'s favourite colour is {v}.", "What is the favourite colour of {n}?",
     "In which shade should I knit the scarf for {n}?",
     ("turquoise", "burgundy", "ochre", "lavender", "olive", "coral", "indigo", "mint")),
    ("{n} gave up {v} for good.", "What did {n} give up?", "What has {n} quit?",
     ("smoking", "coffee", "meat", "sugar", "alcohol", "gluten", "video games", "social media")),
    ("{n} reads only {v} novels.", "What novels does {n} read?", "What book could I give {n} as a present?",
     ("Icelandic crime", "western", "steampunk", "regency", "cyberpunk", "gothic", "spy", "pirate")),
)  # fmt: skip

FACTS_ZH: Final[tuple[Fact, ...]] = (
    ("{n}对{v}过敏，今天在医院查出来的。", "{n}对什么过敏？", "请{n}来家里吃饭，哪种食物不能上桌？",
     ("花生", "虾蟹", "芝麻", "草莓", "芹菜", "腰果", "芒果", "鸡蛋")),
    ("{n}的生日是{v}。", "{n}生日是哪天？", "我应该在几号给{n}准备蛋糕和礼物？",
     ("三月三日", "八月十九", "十一月二十七", "一月八日", "五月十四", "六月三十", "十月十一", "四月五日")),
    ("{n}家的无线密码是{v}。", "{n}家无线网的密码是多少？", "住在{n}那里的时候怎么上网？",
     ("tulip4471", "maple9023", "cobalt1187", "ember6650", "fjord3308", "quartz7214", "saffron5582", "onyx2096")),
    ("{n}因为新工作搬到{v}去了。", "{n}搬到哪里去了？", "{n}现在住在哪个城市？",
     ("厦门", "成都", "青岛", "昆明", "大连", "苏州", "贵阳", "珠海")),
    ("{n}在一个小乐队里弹{v}。", "{n}在乐队里弹什么？", "{n}擅长哪种乐器？",
     ("贝斯", "古筝", "手风琴", "琵琶", "键盘", "吉他", "竖琴", "三弦")),
    ("上周末我把{v}借给了{n}。", "我借给{n}什么东西了？", "我有什么物品还在{n}手里没拿回来？",
     ("电钻", "帐篷", "缝纫机", "投影仪", "望远镜", "相机", "折叠车", "烤箱")),
    ("{n}现在开一辆{v}。", "{n}开的是什么？", "{n}来接我的时候，我该找什么样的车？",
     ("绿色斯柯达", "灰色沃尔沃", "红色菲亚特", "白色特斯拉", "蓝色标致", "黑色奥迪", "黄色迷你", "银色起亚")),
    ("{n}的狗叫{v}。", "{n}的狗叫什么？", "{n}养的宠物名字是什么？",
     ("饼干", "旺财", "豆包", "可乐", "将军", "年糕", "螺丝", "月亮")),
    ("{n}每天早上吃{v}降血压。", "{n}吃什么降血压？", "出门要替{n}带哪种药？",
     ("雷米普利", "氨氯地平", "氯沙坦", "比索洛尔", "坎地沙坦", "赖诺普利", "阿替洛尔", "奈必洛尔")),
    ("{n}在港口当{v}。", "{n}在港口当什么？", "{n}的职业是什么？",
     ("吊车司机", "海关职员", "引航员", "焊工", "潜水员", "调度员", "电工", "测量员")),
    ("{n}那栋楼的门禁号码是{v}。", "{n}那栋楼门禁是多少？", "去看望{n}的时候在楼下要按什么数字？",
     ("7715", "0482", "3391", "6027", "9148", "2563", "8806", "1379")),
    ("{n}的鞋码是{v}。", "{n}的鞋码多大？", "如果给{n}买靴子，要买几号的？",
     ("三十八", "四十四", "四十一", "三十六", "四十六", "三十九", "四十三", "三十七")),
    ("{n}的论文写的是{v}。", "{n}的论文写什么？", "{n}在大学研究什么课题？",
     ("冰川苔藓", "古代关税", "蝙蝠声呐", "乡村电车", "潮汐水闸", "甜菜制糖", "手语演变", "屋顶花园")),
    ("{n}最受不了{v}，再也不去了。", "{n}受不了什么？", "{n}讨厌什么？",
     ("唱卡拉", "吃香菜", "密室逃脱", "听长笛", "露营", "音乐剧", "吃生蚝", "打高尔夫")),
    ("{n}在湖边跟{v}订婚了。", "{n}跟谁订婚了？", "{n}要和谁结婚？",
     ("方大同", "蒋欣", "邱泽", "黎曼", "贺兰", "舒淇", "江河", "段誉")),
    ("{n}的航班星期五{v}降落。", "{n}的航班什么时候降落？", "我要几点到机场去接{n}？",
     ("六点四十", "二十三点一刻", "十四点零五", "十七点五十", "九点二十五", "二十一点半", "十二点十分", "十九点三刻")),
    ("演唱会的票我还欠{n}{v}。", "票钱我欠{n}多少？", "我应该转多少钱给{n}才算清？",
     ("四十五块", "一百一十二块", "六十八块", "二十七块", "九十四块", "五十三块", "一百三十一块", "七十六块")),
    ("{n}推荐的牙医是{v}。", "{n}推荐了哪个牙医？", "{n}说哪位看牙的大夫很好？",
     ("白医生", "欧阳医生", "司徒医生", "上官医生", "夏侯医生", "诸葛医生", "慕容医生", "令狐医生")),
    ("{n}的女儿开始上{v}课了。", "{n}的女儿上什么课？", "{n}家的孩子有什么新爱好？",
     ("击剑", "射箭", "芭蕾", "柔道", "帆船", "象棋", "马术", "陶艺")),
    ("{n}把备用钥匙放在{v}。", "{n}的备用钥匙在哪里？", "{n}不在家的时候我怎么进门？",
     ("花盆底下", "电表箱里", "百叶窗后", "花店老板那", "鸟屋里面", "门框上面", "信箱里头", "石蛙下面")),
    ("{n}只收{v}转账。", "给{n}转账用什么？", "通过哪个平台付款给{n}？",
     ("支付宝", "微信", "云闪付", "招商银行", "农业银行", "京东", "工商银行", "数字人民币")),
    ("{n}滑雪的时候摔断了{v}。", "{n}滑雪摔断了哪里？", "{n}冬天受了什么伤？",
     ("左手腕", "锁骨", "右脚踝", "大拇指", "小腿", "胳膊肘", "两根肋骨", "膝盖骨")),
    ("{n}最喜欢的颜色是{v}。", "{n}喜欢什么颜色？", "给{n}织围巾应该选哪种毛线？",
     ("青绿", "酒红", "土黄", "薰衣草紫", "橄榄绿", "珊瑚橙", "靛蓝", "薄荷绿")),
    ("{n}彻底戒掉了{v}。", "{n}戒掉了什么？", "{n}不再碰什么了？",
     ("香烟", "咖啡", "吃肉", "糖", "白酒", "面食", "游戏", "短视频")),
    ("{n}只看{v}小说。", "{n}看什么小说？", "送{n}哪一类书当礼物比较好？",
     ("北欧侦探", "西部", "蒸汽朋克", "宫廷", "赛博", "哥特", "间谍", "海盗")),
)  # fmt: skip

TALK_EN: Final = [
    "Had lunch with {n} today, the {a} was {b}.", "{n} called, we talked about {a} for an hour.",
    "Can you draft a mail to {n} about the {a}?", "Summarise this {a} report in five lines please.",
    "What is the weather like tomorrow for the {a}?", "Remind me to water the plants after the {a}.",
    "I slept {b} last night.", "The {a} at work was {b} again.", "How do I fix a {b} {a}?", "ok thanks",
    "good morning", "{n} said the {a} looks {b}.", "Translate 'the {a} is {b}' into French.",
    "Let's plan the {a} for next week.", "I am thinking of buying a new {a}.",
    "Is it normal that a {a} gets {b}?", "Saw {n} at the {a}, everyone was {b}.",
    "What should I cook tonight, something {b} maybe?", "My {a} is {b}, what now?",
    "{n} sent me a photo of a {b} {a}.", "The neighbours' {a} is {b} and loud.",
    "Write a short poem about a {b} {a}.", "Which {a} is better, the {b} one or the old one?",
    "lol that was {b}", "{n} asked whether the {a} is still on.", "Book a table for two near the {a}.",
    "The train was {b} because of the {a}.", "I finished the {a}, it took {b} long.",
]  # fmt: skip
A_EN: Final = [
    "meeting", "printer", "invoice", "garden", "concert", "museum", "bicycle", "kitchen", "budget", "deadline",
    "website", "laptop", "curtain", "roof", "salad", "exam", "podcast", "river", "market", "heating",
    "balcony", "library", "camera", "engine", "holiday", "parcel", "recipe", "bakery", "stadium", "festival",
]  # fmt: skip
B_EN: Final = [
    "boring", "great", "noisy", "late", "broken", "delicious", "strange", "cheap", "cold", "crowded",
    "perfect", "awful", "surprisingly", "slow", "bright", "quiet", "dusty", "sweet", "chaotic", "calm",
]  # fmt: skip
TALK_ZH: Final = [
    "今天和{n}一起吃午饭，{a}很{b}。", "{n}打电话来，聊了一个小时的{a}。", "帮我写封邮件给{n}，说说{a}的事。",
    "把这份{a}报告总结成五句话。", "明天{a}那边天气怎么样？", "{a}结束以后提醒我浇花。", "昨晚睡得很{b}。",
    "公司的{a}又是{b}。", "{a}变得{b}了怎么修？", "好的谢谢", "早上好", "{n}说{a}看起来很{b}。",
    "把“{a}很{b}”翻译成英语。", "我们计划一下下周的{a}吧。", "我在考虑买一个新的{a}。", "{a}这么{b}正常吗？",
    "在{a}遇见{n}，大家都很{b}。", "今晚做点什么菜，{b}一点的？", "我的{a}{b}了，怎么办？",
    "{n}发来一张{a}的照片，很{b}。", "邻居家的{a}又{b}又吵。", "写一首关于{a}的小诗。",
    "哪个{a}更好，{b}的还是旧的？", "哈哈太{b}了", "{n}问{a}还办不办。", "在{a}附近订两个人的位子。",
    "火车因为{a}很{b}。", "{a}终于做完了，真{b}。",
]  # fmt: skip
A_ZH: Final = [
    "会议", "打印机", "发票", "花园", "音乐会", "博物馆", "自行车", "厨房", "预算", "截止日期", "网站", "电脑",
    "窗帘", "屋顶", "沙拉", "考试", "播客", "河边", "市场", "暖气", "阳台", "图书馆", "相机", "发动机", "假期",
    "包裹", "菜谱", "面包店", "体育场", "节日",
]  # fmt: skip
B_ZH: Final = [
    "无聊", "棒", "吵", "晚", "坏", "好吃", "奇怪", "便宜", "冷", "拥挤", "完美", "糟糕", "意外", "慢", "明亮",
    "安静", "脏", "甜", "乱", "平静",
]  # fmt: skip
SAID_EN: Final = [
    "Noted. Anything else about the {a}?",
    "Sure, here is what I would do about the {a}: start small, then see.",
    "That sounds {b}. Shall I keep an eye on it?", "Done. Tell me if the {a} needs another look.",
    "I would try the {b} way first.", "Understood.",
    "Here is a draft: 'Dear all, the {a} is {b}.' Shall I change it?",
]  # fmt: skip
SAID_ZH: Final = [
    "记下了。{a}还有别的事吗？", "好的，关于{a}，我建议先从小处开始。", "听起来很{b}，要我留意一下吗？",
    "完成了，{a}有问题再告诉我。", "可以先试试{b}的办法。", "明白。", "草稿如下：各位，{a}很{b}。需要修改吗？",
]  # fmt: skip
MESSAGES: Final = 50_000
FACTS: Final = 400
FAR: Final = 0.15
"""Share of the questions that are `far`."""
BEGIN: Final = datetime(2025, 12, 1, 7, tzinfo=UTC)
DAYS: Final = 365


@dataclass(frozen=True)
class Question:
    """`told` is the sentence that answers it, word for word."""

    text: str
    told: str
    kind: str
    language: str


@dataclass(frozen=True)
class Year:
    """`days` are conversations, one a day: what was said and answered."""

    days: tuple[tuple[tuple[str, str], ...], ...]
    questions: tuple[Question, ...]


def made(seed: int = 7, messages: int = MESSAGES, facts: int = FACTS) -> Year:
    """The same year for the same numbers."""
    rng = random.Random(seed)
    questions = [*_facts(rng, FACTS_EN, NAMES_EN, "en"), *_facts(rng, FACTS_ZH, NAMES_ZH, "zh")]
    rng.shuffle(questions)
    questions = questions[:facts]
    turns = [_talk(rng) for _ in range(messages // 2 - len(questions))]
    for question in questions:
        words = SAID_EN if question.language == "en" else SAID_ZH
        turns.insert(rng.randrange(len(turns)), (question.told, _filled(rng, rng.choice(words), question.language)))
    a_day = -(-len(turns) // DAYS)
    days = tuple(tuple(turns[at : at + a_day]) for at in range(0, len(turns), a_day))
    return Year(days, tuple(questions))


def _facts(rng: random.Random, facts: tuple[Fact, ...], names: list[str], language: str) -> Iterator[Question]:
    for told, near, far, values in facts:
        for name, value in zip(rng.sample(names, len(values)), values, strict=True):
            kind = "far" if rng.random() < FAR else "near"
            asked = (far if kind == "far" else near).format(n=name)
            yield Question(asked, told.format(n=name, v=value), kind, language)


def _talk(rng: random.Random) -> tuple[str, str]:
    language = rng.choice(("en", "zh"))
    said, answers = (TALK_EN, SAID_EN) if language == "en" else (TALK_ZH, SAID_ZH)
    return _filled(rng, rng.choice(said), language), _filled(rng, rng.choice(answers), language)


def _filled(rng: random.Random, text: str, language: str) -> str:
    english = language == "en"
    names, a, b = (NAMES_EN, A_EN, B_EN) if english else (NAMES_ZH, A_ZH, B_ZH)
    return text.format(n=rng.choice(names), a=rng.choice(a), b=rng.choice(b))


def written(year: Year, folder: Path) -> None:
    """The year as transcripts below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, day in enumerate(year.days):
        begin = BEGIN + timedelta(days=number)
        name = f"{begin:%Y%m%d}"
        rows = [
            {"type": "session", "version": 4, "id": name, "timestamp": _stamp(begin), "cwd": "/"},
            {"type": "custom", "id": "k", "parentId": None, "customType": "garra:session",
             "data": {"key": "agent:main:main"}},
        ]  # fmt: skip
        for at, (said, answer) in enumerate(day):
            when = begin + timedelta(minutes=9 * at)
            rows.extend((_row(f"{at}u", when, "user", said), _row(f"{at}a", when, "assistant", answer)))
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)


def _row(name: str, when: datetime, role: str, text: str) -> dict[str, object]:
    content: object = text if role == "user" else [{"type": "text", "text": text}]
    message = {"role": role, "content": content, "timestamp": int(when.timestamp() * 1000)}
    return {"type": "message", "id": name, "parentId": "k", "timestamp": _stamp(when), "message": message}


def _stamp(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
