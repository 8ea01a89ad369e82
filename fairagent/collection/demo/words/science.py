"""Occupations of the sciences and of medicine."""

from __future__ import annotations

from fairagent.collection.demo.words.occupation import Occupation, phrases

SCIENCE = (
    Occupation(
        "botanists", "botanist", "plant science", "studied plants",
        roles=phrases("plant collector; plant scientist; curator of the herbarium; student of ferns"),
        did=phrases("""
            collected ferns and orchids; described new species of grasses; built up a herbarium; studied
            alpine flowers; drew seeds under the microscope; catalogued the flora of the coast; directed the
            botanical garden; bred drought-resistant millet; pressed mosses from the cloud forest; worked on
            the pollination of figs; mapped mangrove vegetation; recorded the medicinal plants of the region
            """),
        works=phrases("""
            a flora of the highlands; a monograph on sedges; the naming of forty species of moss; a key to
            tropical trees; a seed collection; a garden of medicinal plants"""),
        places=phrases("the botanical garden; the national herbarium; a forest research station"),
    ),
    Occupation(
        "marine biologists", "marine biologist", "ocean life", "studied life in the sea",
        roles=phrases("oceanographer; reef researcher; student of sea life; fisheries scientist"),
        did=phrases("""
            studied coral reefs; counted plankton; tagged sea turtles; described deep-water sponges; followed
            the migration of eels; dived in kelp forests; bred oysters in the lagoon; recorded whale songs;
            sampled tidal pools; warned of overfishing; dissected squid on board a research vessel; measured
            the bleaching of reefs"""),
        works=phrases("""
            a survey of the lagoon; an atlas of plankton; a protected reef; a study of spawning grounds; the
            description of a blind shrimp; a hatchery for turtles"""),
        places=phrases("the station on the lagoon; a fisheries institute; an aquarium by the harbor"),
        since=1885,
    ),
    Occupation(
        "astronomers", "astronomer", "the stars and planets", "observed or explained the sky",
        roles=phrases("observer of variable stars; sky surveyor; celestial observer; student of comets"),
        did=phrases("""
            cataloged variable stars; computed the orbits of comets; photographed nebulae; directed the
            observatory; measured stellar spectra; timed eclipses; searched for new asteroids; ground mirrors
            for a telescope; mapped the southern sky; listened to pulsars; studied sunspots; explained tides
            and seasons in public lectures"""),
        works=phrases("""
            a catalog of double stars; the discovery of a comet; a planetarium; a map of the Milky Way;
            measurements of a solar eclipse; a list of faint galaxies"""),
        places=phrases("the mountain observatory; a radio telescope; the planetarium"),
    ),
    Occupation(
        "mathematicians", "mathematician", "mathematics", "worked on mathematics",
        roles=phrases("number theorist; geometer; algebraist; professor of analysis"),
        did=phrases("""
            proved a theorem on prime numbers; worked on partial differential equations; studied knots and
            surfaces; classified finite groups; lectured on geometry; solved a conjecture about convex bodies;
            built tables of integrals; wrote on probability; found a short proof of an old inequality;
            introduced a new kind of algebra; worked on the theory of graphs; corresponded about infinite
            series"""),
        works=phrases("""
            a theorem on lattices; a textbook on algebra; the proof of a packing conjecture; a school of
            geometry; an inequality that carries a family name; lectures on topology"""),
        places=phrases("the institute of geometry; a department of algebra; the statistical office"),
    ),
    Occupation(
        "chemists", "chemist", "the science of substances", "studied substances and their reactions",
        roles=phrases("""
            laboratory researcher; analyst of compounds; maker of dyes; professor of organic synthesis"""),
        did=phrases("""
            isolated alkaloids from bark; synthesized dyes; analyzed mineral water; studied the bonds of
            carbon; developed a catalyst for fertilizer; tested metals for the mint; purified vitamins; worked
            on polymers; measured reaction rates; invented a test for adulterated oil; distilled perfumes;
            taught laboratory methods"""),
        works=phrases("""
            a process for making soda; the synthesis of a blue pigment; a test for arsenic; a durable resin; a
            handbook of laboratory methods; the isolation of a bitter alkaloid"""),
        places=phrases("the assay office; a dye works; the laboratory of a sugar refinery"),
    ),
    Occupation(
        "geologists", "geologist", "rocks and minerals", "studied the earth, its rocks and its history",
        roles=phrases("earth scientist; mapper of rocks; student of volcanoes; mineral surveyor"),
        did=phrases("""
            mapped coal seams; climbed volcanoes; described fossil shells; surveyed copper deposits; measured
            earthquakes; drilled for groundwater; traced ancient glaciers; dated lava flows; explored
            limestone caves; studied folded strata; warned of landslides; collected meteorites"""),
        works=phrases("""
            a map of the mountain range; a theory of basin formation; the discovery of a tin field; a
            monograph on trilobites; a landslide register; a museum of minerals"""),
        places=phrases("the mineral survey; a volcano observatory; a mining college"),
    ),
    Occupation(
        "meteorologists", "meteorologist", "weather and climate", "studied or forecast the weather",
        roles=phrases("weather forecaster; climate researcher; head of the weather bureau; storm observer"),
        did=phrases("""
            forecast storms; launched balloons; kept rainfall records; studied the monsoon; tracked cyclones;
            issued the first gale warnings; measured ozone; explained droughts to farmers; built a network of
            rain gauges; drew daily pressure charts; wintered on an ice station; modeled the jet stream"""),
        works=phrases("""
            a cyclone warning system; a century of rainfall records; a model of the monsoon; a cloud atlas;
            daily charts for fishing fleets; a frost calendar"""),
        places=phrases("the weather bureau; a polar station; an airport forecasting office"),
    ),
    Occupation(
        "surgeons", "surgeon", "operative medicine", "operated on patients",
        roles=phrases("""
            operating physician; hospital physician; transplant specialist; head of the operating theater"""),
        did=phrases("""
            operated on heart valves; set broken bones; removed cataracts; transplanted kidneys; repaired
            cleft palates; ran a field hospital; introduced sterile gloves; treated burns with skin grafts;
            closed wounds under gunfire; trained assistants in anesthesia; operated by lamplight on remote
            islands; perfected a suture for arteries"""),
        works=phrases("""
            the first kidney transplant of the country; a technique for cleft palates; a field hospital; an
            atlas of operative methods; a burns ward; a suture for blood vessels"""),
        places=phrases("the general hospital; a mission clinic; a military field hospital"),
    ),
    Occupation(
        "nurses", "nurse", "patient care", "cared for the sick as a profession",
        roles=phrases("ward supervisor; caregiver; hospital superintendent; community health worker"),
        did=phrases("""
            cared for cholera patients; organized hospital wards; trained village health workers; opened a
            school for bedside care; vaccinated children; ran a leprosy clinic; wrote rules for clean wards;
            attended mothers in mountain villages; served on a hospital ship; introduced night shifts with
            fair pay; kept fever charts; founded a hospice"""),
        works=phrases("""
            a manual of bedside care; a training school; a hospice; a reform of night shifts; a mobile clinic;
            a code of ward hygiene"""),
        places=phrases("the fever hospital; a village dispensary; a maternity ward"),
    ),
    Occupation(
        "epidemiologists", "epidemiologist", "public health",
        "studied how diseases spread and can be stopped",
        roles=phrases("public health physician; disease detective; health statistician; vaccination officer"),
        did=phrases("""
            traced a cholera outbreak to a well; counted malaria cases; planned vaccination campaigns;
            followed influenza through seaports; linked asbestos to lung disease; mapped tuberculosis by
            street; tested a measles vaccine; set up registers of births and deaths; fought river blindness;
            advised on quarantine; compared mortality among mill workers; trained outbreak teams"""),
        works=phrases("""
            a map of cholera wells; a register of cancers; the end of smallpox in the province; a trial of
            oral vaccine; a malaria survey; a rule for quarantine"""),
        places=phrases("the health ministry; a tropical disease institute; the bureau of vital statistics"),
        since=1885,
    ),
)  # fmt: skip
