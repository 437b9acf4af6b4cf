"""Words that say neither what is wrong nor why, for the vague-reason rule in `reasons.py`.

A word belongs here if an on-call lead who reads it in the weekly report learns nothing: "issue",
"stop", "긴급". A word for a symptom, a place or a cause ("latency", "checkout", "유출") doesn't
belong here. In doubt, leave a word out.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Function words, time, quantity and chatter; matched as written.
ENGLISH_FILLERS = _words(
    """
    a abc abcd about above across actually adipiscing afk after afternoon again against ago ah
    aight all almost along already alright also although always am amet an and another any anybody
    anymore anyone anything anyway anywhere are arent around as asap asdf at auto automatic
    automatically away awhile back bar baz be because been before behind being below besides
    between bit bits bla blah both brb btw but by bye came can cannot cant cautionary cc certain
    cet come comes coming consectetur could couldnt couple course cuz daily day days despite did
    didnt do documented does doesnt doing dolor done dont due dummy dunno during each earlier
    early eight either elit else elsewhere enough eod est eta etc even evening event ever every
    everybody everyone everything everywhere except faq far fast faster few finally first five
    fixme foo for forever four friday from further fyi gave general generic get gets getting give
    given gives giving gmt goes going gone gonna got gotta gtg had haha half has hasnt have havent
    having he hehe hello hence her here hereby heres hers hes hey hi hihi him his hmm hour hours
    how however hr hrs huh hundred i idk if ill im imo in indeed inside instead into ipsum is isnt
    it its itself ive jst just keep keeping keeps kept kind kinda kinds kk kkk kst last lately
    later latest least lemme less let lets like likely little ll lol longer lorem lot lots made
    mainly make makes making many may maybe me mean meanwhile meh midnight might million min mine
    mins minute minutes moment moments monday month months more moreover morning most mostly much
    must my myself na nada nah nan near nearly neither never next nice night nil nine no nobody
    none noon nope nor not nothing now nowhere np null nvm of off oh ok okay omg on once one ones
    only onto oops or other others otherwise our ours out outside over own particular per perhaps
    placeholder please plenty pls plz pm possibly pretty probably ps pst put puts putting qaz
    qazwsx qazwsxedc quite quux qux qwerty rather re read reported reporting request requested
    requesting right said sake same sample saturday say saying says sec second secs see seeing
    seems seen seven several shall she shes should shouldnt simply since sit six so some somebody
    somehow someone something sometime sometimes somewhat somewhere soon sorry sort specific still
    string stuff such sunday super sure tba tbc tbd tbh tell telling ten text than thank thanks
    that thatll thats the their theirs them themselves then there therefore theres these they
    theyll theyre theyve thing things third this those though thousand three through throughout
    thru thursday thus thx til till time timeframe times to todo together told tomorrow tonight
    too took toward towards tryna tuesday two ty u ugh uh um undefined under unless unlike until
    untill up upon ur us utc various very via wanna want wants was wasnt way we wednesday week
    weekend weekly weeks well went were werent weve what whatever whats when whenever where wheres
    wherever whether which while who whoever whole whom whos whose why will wip with within
    without wont would wouldnt wow write written wsx wtf xyz ya yada yeah year years yep yes
    yesterday yet you youd youll your youre yours yourself youve yup zero
    """
)

# Nouns, verbs and adjectives too general to be a cause; matched in every inflection.
ENGLISH_VAGUE = _words(
    """
    abnormal abundance action activate active activity add additional affect afraid agree allow
    angry announce announcement anomaly app application approval approve aside ask assess
    assessment assume attention automate await aware bad badly basic become begin behave behavior
    behaviour believe better big block bork boss break breakage breather broke broken bug buggy
    business bust button care careful carefully case cause caution cautious ceo channel chat check
    chief choice chore circle circumstance clarify clean cleanup clear click close colleague
    comment communicate concern confirm consider consult continue control coordinate correct
    correctly coworker crap critical crucial cto current currently cut damn danger dangerous
    deactivate deal debug decide decision default defensive description detail detect determine
    dev difficult difficulty directive director disable disabled discover discuss discussion
    dislike disregard dm doc documentation doubt emergency enable end engage engagement engineer
    ensure entire env environment error escalate escalation especially evaluate evaluation
    eventually exact exactly exist expect experience experiment experimental explain explanation
    explanatory extra extreme extremely fail failing failure fault feature feel fill find fine
    finish fishy fix flag flip follow force found freak friend fubar fuck fun funky glitch global
    globally go good great guess guideline gut guy halt hand handle happen happy hard head hell
    help hiccup high higher hold honest hope horrible hotfix housekeeping huge human hunch idea
    ignore immediate immediately impact implement important improper improperly incident
    incorrectly info inform information instinct instruct instruction intend interim internal
    intervene intervention investigate investigation involve issue jira job joke kill killswitch
    know known land lead leader leadership leave level life live long look low maint maintain
    maintenance major malfunction manage management manager manual manually matter measure meet
    meeting mention mess mind minor mishap miss mistake mitigate mitigation mode modify
    momentarily monitor move need new news nonsense normal normally note notes notice notify
    observe obvious obviously occur odd oncall ongoing open operate operation operational operator
    ops originally owner panicking paranoia paranoid part pause pending people perform period
    person phase pick ping plan play playbook point possible potential practice precaution
    precautionary preemptive preemptively prepare press prevent prevention previous prior priority
    proactive problem procedure proceed process prod produce production program progress project
    proper properly protect protective protest prove provide purpose quick random ready real
    reason recent recently recover recovery reenable refer reference reject related remain
    remediate remediation remember remove require requirement rerun research reset resolution
    resolve resolved restore resume revert review rid risk risky routine rule run runbook safe
    safely safety sanity save scared scary schedule screw segment serious seriously service set
    setting severe severity share shit short shortly show shut shutdown shutoff situation sketchy
    slack sleep slight slightly small smell smoke solution solve special stabilise stability
    stabilize stable staging stakeholder standby standup start state status stay step stop story
    strange strangely stupid subject suck suddenly suggest support suppose suspend switch sync
    system take talk task team tech technical temp temporarily temporary terminate terrible test
    think thread ticket tmp today toggle totally touch traffic trial trigger trouble troubleshoot
    true try turn type typical ugly uncertain uncertainty unclear undecided unexpected
    unexpectedly unhappy unknown unplanned unsafe unspecified unstable unsure unusual unusually
    update upset urgency urgent urgently use usual usually validate validation verification verify
    vibe view wait wake watch weird weirdly wish wonder wonky work workaround worrisome worry
    worrying worse worst wrong wrongly
    """
)

# A number after one of these is a reference: "incident 7", "PR-5123", "티켓 #12".
REFERENCE_NOUNS = _words(
    """
    chg cr inc incident issue jira mr pr prb req rfc ticket 사고 이슈 인시던트 장애 장애번호
    접수번호 티켓
    """
)

# These need two digits: "case 1" is as often "test case 1" as a support case.
LOOSE_REFERENCE_NOUNS = _words("sev bug case change problem task 버그 사건 작업")

# Phrases that are vague as a whole although one of their words is not.
VAGUE_PHRASES = (
    r"\b(?:shut|take|taking|took|taken|bring|bringing|turn|power|wind|calm|cool)"
    r"(?:ting|ed|ing)?(?: \w+){0,2} down\b",
    r"\b(?:security|legal|compliance|customer|personal|private|regulatory|performance) "
    r"(?:reason|purpose|matter|ground)s?\b",
    r"\bblock(?:ing|ed)? (?:all |every |the )*(?:requests?|traffic|calls?)\b",
    r"\bon fire\b",
    r"\bwar room\b",
    r"\bbridge call\b",
    r"\b(?:see|refer to|check|read) (?:the )?documents?\b",
    r"\bdouble[ -]?check\w*",
    r"\b(?:dry|test|trial) run\b",
    r"\b(?:get|got|getting) (?:a |the )?(?:phone )?call\b",
    r"\bact(?:s|ed|ing)? (?:up|weird|strange|strangely|funny|fast|quickly|now|immediately)\b",
    r"\bfor security\b",
    r"\b(?:call|ask|ping|dm|mail|e-?mail|message|text) (?:me|us|him|her|them)\b",
    r"\b(?:see|check|read|per|in|by) (?:the |my |our |last |previous )*"
    r"(?:e-?mail|mail|message)s?\b",
    r"메일 ?(?:참고|참조|확인)",
    r"보안(?:상의?|을)? ?(?:이유|사유|위해|위한|목적)\w*",
)

# Whole words; an unknown word of one syllable (앱, 봇) counts as meaning like any other.
KOREAN_FILLERS = _words(
    """
    각 같이 걍 곧 그 급 꼭 끝 내 다음 당 더 되게 뒤 딱 또 또는 매 못 뭐 밑 바 바로 버튼 보고 분
    빨 새 쓸 씀 아직 안 앞 약 약간 옆 예 온 왜 위 응 이미 잘 저 제 조금 좀 참 채 척 첫 총 큰 타
    팀 헉 헐 현 혹은 흠
    """
)

# Korean is agglutinative: a word is vague when it is a vague stem followed only by vague stems,
# particles and endings ("문제발생으로", "정지합니다", "꺼뒀습니다"). So neither list has words that
# consist of other listed ones.
KOREAN_STEMS = _words(
    """
    가끔 가나다 가동 가지 각자 각종 감사드 감사합 감지 갑자기 같네 같다 같습 같아 같은 같음 개발자
    개발팀 개선 개월 개인 거기 걱정 검토 결정 결함 경고 경우 계속 계획 고장 공유 과장 관계 관련
    관리 관찰 관하 관한 굉장 권고 귀찮 그거 그것 그게 그냥 그때 그래서 그러 그런 그리고 글로벌
    금방 금요일 급하 급한 급함 급합 급해 급히 기능 기록 기분 기술적 기재 기타 긴급 까지 깨졌 꺼 껐
    꼬여 꼬였 꼬임 끄 끈 끌 끔 끕니 나고 나는 나서 나중 나타나 난리 내가 내려 내렸 내리 내릴 내림
    내립 내부 내용 내일 너무 네네 넵넵 논의 놓겠 놓을게 놨습 누가 누구 누군 누르 누름 눌러 눌렀
    느낌 다들 다른 다소 다시 담당 당분간 당장 대기 대비 대응 대표 대하 대한 대해 덕분 도와 도움
    돌려 돌렸 돌리 동안 동일 동작 돼서 돼요 됐습 됐어 됐음 되고 되는 되면 되서 되어 되었 된다 될때
    됩니 두겠 둘게 둡니 뒀습 드려 드리 드릴 드림 드립 듯하 듯함 듯합 등등 디버그 디버깅 따라 따로
    때까지 때문 또다시 똑바로 라마바사 리스크 마무리 막 막습 막으 만약 만일 많아 많은 많이 말씀
    말이나 말해 망가 망함 매우 먼저 멈추 멈출 멈춤 멈춥 멈춰 멈췄 메신저 몇몇 모니터링 모두 모든
    모레 모르 모를 모름 모릅 목요일 목적 몰라 몰랐 못하 못함 못해 무기한 무슨 무언가 무엇 문의
    문제 물어 뭐가 뭐임 뭔가 뭔지 미리 미상 미안 미정 바람 바랍 반응 발견 발생 방금 방지 방침 벌써
    변경 별도 별로 보겠 보류 보안상 보자 보죠 복구 본인 볼게 봄니 봅니 봅시 봤습 봤어 부득이 부분
    부장 부적절 부탁 분간 분석 불가피 불명 불안 불편 불확실 비밀 비상 비정상 비즈니스 비활성 빨리
    사용 사유 사장 사전 사정 사태 사항 살려 살리 삼아 상급 상기 상사 상세 상의 상태 상황 새로 새벽
    생각 생겨 생겼 생기 생긴 생길 생김 서비스 선제 선조치 설명 세그먼트 세우 세워 세웠 셧다운 소식
    수고 수동 수리 수상 수시 수요일 수정 스레드 스위치 스탑 스톱 슬랙 시간 시급 시도 시범 시스템
    시연 시켜 시켰 시키 시킴 시험 신속 실수 실험 심각 심심 심하 심한 심함 심해 쓰라 쓰레드 아래
    아무 아무튼 아시는 아시다 아자차카타파하 아주 아침 안녕 안댐 안돼 안되 안된 안됨 안됩 안전
    안해 않고 않네 않는 않습 않아 않은 않음 알다시피 알려 알수 알아 암튼 얘기 어떤 어떻게 어제
    어쨌든 얼른 업데이트 업무 없고 없네 없는 없다 없습 없어 없을 없음 없이 에러 에휴 엔지니어 여기
    여러 여러분 연락 연습 염려 예기 예방 예상 예요 예정 오늘 오동작 오류 오작동 오전 오프 오후
    올려 올리 올림 올바 완료 왜냐 왠지 요구 요청 우려 우리 우선 운영 운영팀 원인 월요일 위급 위에
    위와 위키 위하 위한 위해 위험 윗분 윗선 유지 음음 응급 의심스러 의하 의한 의해 이거 이것 이게
    이따 이라 이런 이며 이므로 이번 이상 이야기 이에 이용 이유 이하 이후 인하 인한 인해 일간 일단
    일부 일시 일요일 일을 일이 임시 임원 입니 있고 있네 있는 있다 있던 있습 있어 있었 있으 있을
    있음 자꾸 자동 자세 자정 자주 작동 작성 작은 잘못 잠깐 잠시 잠잠 잠정 장난 재개 재발 재시작
    재점검 재확인 저거 저것 저기 저녁 저는 저런 저번 저희 적당 적으라 적절 전까지 전달 전부 전역
    전체 점검 점심 정기 정도 정리 정말 정비 정상 정지 제가 제거 제대로 제발 조사 조속 조심 조짐
    조치 종결 종료 종류 좋습 좋아 좋은 좋지 죄송 주간 주말 주세 주시 주십 주의 주일 줄게 중단 중대
    중요 중이 중임 중입 중지 즉각 즉시 증상 지금 지난번 지라 지속 지시 지켜 진짜 진행 질문 징후
    차단 차원 차후 착오 참고 참조 채널 처리 최소화 추가 추이 추후 출근 카톡 케케 켜 켤 켬 켭 켰
    크게 크크 큰일 킨 킬 터졌 터짐 테스트 테스팅 토요일 퇴근 팀원 팀장 파악 판단 평일 프로덕션
    피해 필요 하겠 하고 하기 하는 하라 하려 하면 하셔 하시 하신 하실 하심 하여 하여튼 하였 하지
    하하 한다 한번 한시 할게 할까 할께 할때 함니 합니 핫픽스 항상 해결 해당 해보 해봄 해봅 해서
    해야 해요 해제 해주 했다 했습 했어 했음 향후 허락 헤헤 현상 현재 협의 호호 혹시 혹여 화요일
    확산 확인 환경 활성 회사 회의 후보고 후후 훨씬 흠흠 히히 힘들
    """
)

# Counters that directly follow a number: "24시간", "3일만".
KOREAN_COUNTERS = _words("초 분 시 시간 일 주 주일 달 개월 월 년 번 회 차 째 개 건 명")

# Particles, light verbs and endings, in any order after a stem.
KOREAN_TAILS = _words(
    """
    가 간 같 거 건 걸 겁니다 것 게 겠 겠습 겸 겸사 고 과 군요 기 길 까 께 나 난 남 납니다 났 났습
    냥 네 놉 놓 놔 놨 는 니 님 다 달라 당하 당한 당함 당해 당했 대로 던 데 도 도록 돼 됐 되 된 될
    됨 됩 두 둔 둘 둠 둡 둬 뒀 드렸 든 들 듯 등 때 라 랑 래 려 로 로써 를 마 만 만큼 말 며 면 및
    밖에 받 받습 번 보 본 볼 봄 봅 봐 봤 부터 뿐 상 생 서 성 세요 수 습니다 시 시킵 십시오 싶 싶습
    아 았 야 어 없 었 에 여 였 와 요 용 워 웠 으려 으로 으로써 으세요 은 을 음 의 이 인 일 임 입
    있 자 적 전 조차 죠 주 줄 줌 중 줘 줬 지 째 쪽 차 처럼 측 편 하 하셨 한 한테 할 함 합 해 했 화
    후
    """
)
