"""Occupations of music, literature, the visual arts and film."""

from __future__ import annotations

from fairagent.collection.demo.words.occupation import Occupation, phrases

ARTS = (
    Occupation(
        "jazz musicians", "jazz musician", "improvised music", "played or sang jazz",
        roles=phrases("bandleader; saxophonist; trumpet player; swing pianist"),
        did=phrases("""
            led a quintet; improvised on the tenor saxophone; played bebop in night clubs; recorded for small
            labels; toured with a big band; mixed swing with local drumming; sang standards in four languages;
            arranged blues for brass; played bass on radio broadcasts; hosted late jam sessions; wrote ballads
            for trumpet; opened a bar for live sessions"""),
        works=phrases("""
            an album of ballads; a suite for big band; a live recording with a quartet; a blues in seven-four
            time; a festival in a railway shed; a trumpet solo copied by many"""),
        places=phrases("a basement club; a radio big band; a record label"),
        since=1895,
    ),
    Occupation(
        "opera singers", "opera singer", "voice", "sang in operas",
        roles=phrases("soprano; tenor; mezzo-soprano; baritone"),
        did=phrases("""
            sang leading parts in Verdi and Mozart; made a debut in Carmen; recorded arias; joined a lyric
            ensemble; performed in open-air arenas; premiered works by living composers; toured with a chamber
            ensemble; gave recitals of art songs; sang Tosca in three languages; stepped in as Aida overnight;
            taught vocal technique; brought arias to market squares"""),
        works=phrases("""
            a celebrated Carmen; a recording of arias; a farewell recital; the title part in Aida; a school
            for young voices; a recital of lullabies"""),
        places=phrases("the lyric theater; a touring company; the conservatory"),
    ),
    Occupation(
        "composers", "composer", "harmony and counterpoint", "wrote music",
        roles=phrases("writer of symphonies; song writer; maker of film scores; writer of chamber music"),
        did=phrases("""
            wrote symphonies; set poems to music; scored silent films; wrote string quartets; combined gongs
            with strings; orchestrated folk dances; wrote hymns for children's choirs; experimented with tape
            loops; notated court music; wrote ballets; conducted first performances; taught counterpoint"""),
        works=phrases("""
            a symphony in one movement; a song cycle; a string quartet; a film score with bamboo flutes; a
            requiem; a ballet on a folk tale"""),
        places=phrases("the conservatory; a broadcasting orchestra; a film studio"),
    ),
    Occupation(
        "poets", "poet", "verse", "wrote poetry",
        roles=phrases("writer of verse; lyric author; sonneteer; author of odes and elegies"),
        did=phrases("""
            wrote sonnets; published slim volumes of verse; recited ballads in taverns; wrote haiku and free
            verse; edited a magazine for new verse; wrote elegies for a drowned village; sang verse to the
            lute; wrote love lyrics in dialect; circulated verses in handwritten copies; read stanzas on the
            radio; wrote odes to ordinary things; kept the ghazal alive"""),
        works=phrases("""
            a book of elegies; a long ode to salt; a cycle of sonnets; a first volume of lyrics; an anthology
            of verse; verses learned by schoolchildren"""),
        places=phrases("a literary magazine; a small press; a house for authors"),
    ),
    Occupation(
        "novelists", "novelist", "prose fiction", "wrote novels",
        roles=phrases("fiction writer; author of family sagas; storyteller in prose; writer of thrillers"),
        did=phrases("""
            wrote family sagas; published stories in installments; described life in mining towns; wrote
            detective fiction; set a trilogy in a river port; wrote under a pen name; turned letters into
            fiction; wrote about exile and return; drafted eight books by hand; wrote satire about offices;
            portrayed three generations of fishers; wrote ghost stories"""),
        works=phrases("""
            a trilogy about a river port; a satire on civil servants; a saga of four sisters; a detective
            series; a book of linked stories; a tale of exile"""),
        places=phrases("a publishing house; a literary weekly; a writers' colony"),
    ),
    Occupation(
        "translators", "translator", "languages", "translated books or documents",
        roles=phrases("interpreter; literary mediator; renderer of foreign verse; editor of bilingual books"),
        did=phrases("""
            rendered Russian novels into Swahili; brought Persian verse to new readers; interpreted at
            conferences; put folk tales into English; published bilingual editions; worked from Arabic and
            French; rendered plays for the stage; brought Portuguese poems into Japanese; edited a series of
            world classics; compiled a glossary of idioms; interpreted in courtrooms; subtitled foreign films
            """),
        works=phrases("""
            a version of the Odyssey; a bilingual anthology; a rendering of Persian quatrains; a glossary of
            idioms; a new Don Quixote; a series of foreign classics"""),
        places=phrases("a publishing house; the conference service; the office for subtitles"),
    ),
    Occupation(
        "painters", "painter", "drawing and color", "painted pictures",
        roles=phrases("artist in oils; watercolorist; portrait artist; muralist"),
        did=phrases("""
            made portraits in oil; covered walls with murals; worked in watercolor; exhibited still lifes;
            showed abstract canvases; restored frescoes; sketched market scenes; worked in ink on silk;
            portrayed fishers and farmers; joined a group of modernists; drew from life every morning; made
            large landscapes in tempera"""),
        works=phrases("""
            a mural in the railway station; a series of self-portraits; a triptych of the sea; watercolors of
            the delta; a canvas of a night market; a fresco for the town hall"""),
        places=phrases("the academy of fine arts; a shared studio; a municipal gallery"),
    ),
    Occupation(
        "sculptors", "sculptor", "three-dimensional art", "made sculptures",
        roles=phrases("carver of stone; maker of bronzes; artist in wood and metal; monument maker"),
        did=phrases("""
            carved marble figures; cast bronzes; welded scrap iron; made memorials for public squares; worked
            in ebony and driftwood; modeled heads in clay; carved granite animals; assembled kinetic objects;
            cut reliefs for a theater; built figures of wire; exhibited torsos in limestone; restored temple
            carvings"""),
        works=phrases("""
            a memorial of black granite; a bronze of a seated reader; a frieze for the theater; a fountain
            with herons; a figure of welded iron; a carved wooden gate"""),
        places=phrases("a foundry; the academy of fine arts; a quarry workshop"),
    ),
    Occupation(
        "photographers", "photographer", "camera work", "took photographs",
        roles=phrases("portraitist with a camera; photo reporter; camera artist; maker of studio portraits"),
        did=phrases("""
            ran a portrait studio; documented harbor life; took pictures of weddings and funerals; shot war
            reportage; printed on glass plates; followed nomads with a camera; pictured empty factories;
            exposed wildlife by moonlight; hand-colored prints; kept forty thousand negatives; published photo
            essays; recorded city streets at dawn"""),
        works=phrases("""
            a photo essay on ferries; an archive of studio portraits; a book of night streets; a series on
            salt workers; the picture of a lone kite; an exhibition of glass plates"""),
        places=phrases("a portrait studio; an illustrated magazine; a picture agency"),
    ),
    Occupation(
        "film directors", "film director", "cinema", "directed films",
        roles=phrases("filmmaker; maker of documentaries; cineast; auteur"),
        did=phrases("""
            made silent comedies; shot documentaries with a hand camera; adapted novels for the screen; worked
            with amateur actors; filmed in black and white; won a festival prize; ran a small studio; shot a
            trilogy about rail workers; made animated shorts; edited newsreels; founded a society for silent
            movies; filmed village theater"""),
        works=phrases("""
            a documentary on fishing boats; a trilogy about migrants; a silent comedy; an animated fable; a
            thriller set on a night train; a screen version of a folk epic"""),
        places=phrases("a film studio; the documentary unit of the state broadcaster; a cinema club"),
        since=1892,
    ),
)  # fmt: skip
