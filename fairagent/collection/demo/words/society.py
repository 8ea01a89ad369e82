"""Occupations of the law, of public life and of the humanities."""

from __future__ import annotations

from fairagent.collection.demo.words.occupation import Occupation, phrases

SOCIETY = (
    Occupation(
        "lawyers", "lawyer", "law", "practiced law and advised or defended others",
        roles=phrases("advocate; legal adviser; defense counsel; barrister"),
        did=phrases("""
            argued cases before the appeals court; defended tenants against eviction; represented dock workers
            in court; drew up contracts and wills; pleaded for prisoners without counsel; advised families on
            inheritance; took fishing disputes to the high court; challenged unfair land titles;
            cross-examined witnesses with unusual patience; gave free legal advice on market days; brought
            claims against negligent employers; defended newspapers in libel suits"""),
        works=phrases("""
            a handbook on tenancy; the defense in a long water rights case; a guide to courtroom procedure; a
            petition that changed the rules of bail; the first legal aid fund of the district; a collection of
            closing speeches"""),
        places=phrases("""
            a legal aid office; a small chamber near the courthouse; a firm for commercial cases"""),
    ),
    Occupation(
        "judges", "judge", "jurisprudence", "sat on the bench of a court and decided cases",
        roles=phrases("magistrate; presiding justice; member of the bench; chief justice"),
        did=phrases("""
            presided over the appeals court; heard family and custody cases; wrote opinions on property
            rights; sat on the bench of the constitutional court; passed sentence in fraud trials; opened the
            first juvenile court; heard petitions in three languages; ruled on disputes over wells and
            grazing; set limits on pretrial detention; shortened the waiting lists of the district court;
            dissented in a famous ruling on censorship; rode a circuit of rural courts"""),
        works=phrases("""
            a ruling on equal inheritance; a dissent that became law; a verdict in a harbor fraud trial; a
            plain language guide to sentencing; the reform of the district courts; an opinion on the right to
            counsel"""),
        places=phrases("the district court; the supreme court; a tribunal for labor disputes"),
    ),
    Occupation(
        "diplomats", "diplomat", "international relations", "represented a state abroad or negotiated for it",
        roles=phrases("ambassador; consul; envoy; treaty negotiator"),
        did=phrases("""
            negotiated a border treaty; served as ambassador in four capitals; led the delegation to the peace
            talks; drafted a convention on shipping; opened the first consulate in the port; mediated between
            neighboring states; arranged an exchange of prisoners; presented credentials in nine countries;
            spoke before the general assembly; reported from the embassy during the crisis; secured visas for
            refugees; settled a dispute over fishing grounds"""),
        works=phrases("""
            an accord on river navigation; a ceasefire agreement; the memoir of a long embassy; a treaty on
            student exchange; the evacuation of a besieged consulate; a protocol on refugees"""),
        places=phrases("""
            the foreign ministry; an embassy overseas; the permanent mission to the United Nations"""),
    ),
    Occupation(
        "trade unionists", "trade unionist", "labor relations", "organized workers and spoke for them",
        roles=phrases("labor organizer; shop steward; workers' representative; strike leader"),
        did=phrases("""
            organized dock workers; led a strike for the eight-hour day; bargained over wages in the cotton
            mills; collected dues in the mining villages; won paid leave for railway crews; founded a sick
            fund for laborers; represented plantation workers; called for safety rules in the foundries; ran
            night classes for mill hands; signed the first collective agreement of the port; marched with
            garment workers; edited a workers' weekly"""),
        works=phrases("""
            a settlement of the tramway strike; the eight-hour agreement; a pamphlet on factory safety; a
            solidarity fund for dismissed workers; a federation of domestic workers; a pension scheme for
            miners"""),
        places=phrases("the dockers' hall; a textile mill; the labor federation"),
    ),
    Occupation(
        "journalists", "journalist", "the press", "gathered and reported the news",
        roles=phrases("newspaper correspondent; reporter; news editor; columnist"),
        did=phrases("""
            reported from the front; edited a morning newspaper; wrote a weekly column; uncovered a housing
            scandal; covered parliament for the evening edition; interviewed farmers and ministers alike;
            filed dispatches by telegraph; ran the newsroom of a provincial daily; exposed bribery in the
            customs office; read the news on the radio; wrote features on city life; kept an underground
            bulletin going under censorship"""),
        works=phrases("""
            a series of reports on child labor; an exposé on tainted flour; a column signed with a pseudonym;
            an interview with striking miners; dispatches from a flooded delta; a newspaper for migrants"""),
        places=phrases("a provincial daily; the national news agency; a weekly magazine"),
    ),
    Occupation(
        "teachers", "teacher", "education", "taught children or adults in a school",
        roles=phrases("educator; head of school; school principal; instructor"),
        did=phrases("""
            taught reading in village classrooms; ran an evening school for adults; wrote primers in two
            languages; led a boarding school; brought blackboards and books to the islands; trained pupils for
            the entrance examination; taught arithmetic with beads and string; opened a kindergarten;
            introduced lessons in the mother tongue; visited remote classrooms on horseback; taught blind
            children to read; kept lessons going during the evacuation"""),
        works=phrases("""
            a primer used for three decades; a school without fees; a method for large classrooms; the
            literacy campaign of the province; a reading book for adults; a curriculum on local history"""),
        places=phrases("a village school; the city lyceum; a boarding school"),
    ),
    Occupation(
        "librarians", "librarian", "book collections", "built, kept or opened libraries",
        roles=phrases("keeper of books; head of the reading room; cataloger; curator of manuscripts"),
        did=phrases("""
            cataloged manuscripts; opened a public reading room; sent book boxes to the villages; classified
            forty thousand volumes; rescued rare books from a flood; started story hours for children;
            introduced card indexes; ran a bookmobile along the coast; built the national bibliography; lent
            books to hospital patients; gathered pamphlets in minority languages; moved the stacks into a new
            building"""),
        works=phrases("""
            a union catalog; a bookmobile service; the bibliography of early printing; a scheme of
            classification; a lending collection for sailors; a children's reading room"""),
        places=phrases("the national library; a municipal reading room; a university archive"),
    ),
    Occupation(
        "historians", "historian", "history", "studied and wrote about the past",
        roles=phrases("chronicler; archival scholar; scholar of the past; professor of medieval studies"),
        did=phrases("""
            traced trade routes in old customs ledgers; edited medieval charters; collected oral testimonies;
            wrote on the grain trade; studied parish registers; deciphered court chronicles; lectured on early
            empires; reconstructed the daily life of port cities; published sources on the salt caravans;
            questioned received dates; compared peasant revolts; worked through the archives of merchant
            houses"""),
        works=phrases("""
            a study of caravan cities; a chronicle of the great famine; an edition of royal charters; a
            two-volume account of the spice trade; a book on village memory; an atlas of vanished kingdoms
            """),
        places=phrases("the state archive; a department of medieval studies; an oral testimony project"),
    ),
    Occupation(
        "linguists", "linguist", "languages and grammar", "studied languages, their sounds and their grammar",
        roles=phrases("grammarian; phonetician; lexicographer; scholar of languages"),
        did=phrases("""
            recorded endangered languages; compiled a dialect dictionary; described the grammar of a river
            language; mapped vowel shifts; devised a spelling for an unwritten tongue; studied the speech of
            children; compared verb systems; transcribed folk tales word for word; worked on tone and stress;
            collected proverbs from the last speakers; analyzed the syntax of sign languages; traced loanwords
            along the coast"""),
        works=phrases("""
            a grammar of a highland language; a dictionary in six parts; an atlas of dialects; a theory of
            vowel harmony; an alphabet still in use; a corpus of recorded speech"""),
        places=phrases("the institute for dialects; a phonetics laboratory; the language academy"),
    ),
    Occupation(
        "archaeologists", "archaeologist", "ancient cultures",
        "dug up and studied the remains of past people",
        roles=phrases("excavator; field director; antiquarian; scholar of ancient remains"),
        did=phrases("""
            directed an excavation; unearthed a bronze age cemetery; drew pottery sherds; dated burial mounds;
            surveyed ruined cities; dived to a sunken harbor; cleaned mosaics; mapped rock shelters; dug
            trenches across a fortified hill; recovered a hoard of coins; studied ancient irrigation;
            classified stone tools"""),
        works=phrases("""
            the discovery of a painted tomb; a chronology of glazed pottery; the plan of a buried temple; a
            find of clay tablets; a survey of stone circles; the rescue dig before a dam was built"""),
        places=phrases("the antiquities service; a long-running excavation; the museum of antiquities"),
    ),
)  # fmt: skip
