"""Occupations of building, making, flying, cooking, climbing and play."""

from __future__ import annotations

from fairagent.collection.demo.words.occupation import Occupation, phrases

CRAFTS = (
    Occupation(
        "bridge engineers", "bridge engineer", "structural design", "designed or built bridges",
        roles=phrases("""
            designer of viaducts; structural designer; builder of river crossings; master of steel arches"""),
        did=phrases("""
            designed river crossings; calculated steel arches; built a railway viaduct; tested suspension
            cables; sank caissons into the riverbed; spanned a gorge with concrete ribs; strengthened old
            masonry piers; replaced ferries with low causeways; studied wind loads on long spans; drew timber
            trusses for mountain roads; rebuilt crossings after the flood; supervised the riveting of girders
            """),
        works=phrases("""
            a viaduct of nineteen arches; a suspension span over the strait; a footway of bamboo and steel; a
            cantilever across the gorge; a formula for cable sag; a double-deck river crossing"""),
        places=phrases("the railway board; the ministry of public works; a steel construction company"),
    ),
    Occupation(
        "software engineers", "software engineer", "computing", "designed or wrote programs for computers",
        roles=phrases("programmer; developer of compilers; systems designer; computer scientist"),
        did=phrases("""
            wrote compilers; programmed satellite controls; designed an open database; fixed navigation code;
            built a payment system for mobile phones; taught programming in public libraries; wrote the
            scheduler of an operating system; encoded scripts for early displays; led a team for air traffic
            systems; maintained a free text editor; simulated weather on early mainframes; made screen readers
            for blind users"""),
        works=phrases("""
            a compiler; an open mapping program; a font encoding; a payment system; a language for children; a
            library for fast sorting"""),
        places=phrases("a computing center; a telephone company; a satellite control room"),
        since=1938,
    ),
    Occupation(
        "architects", "architect", "building design", "designed buildings",
        roles=phrases("building designer; planner of houses; master builder; urban planner"),
        did=phrases("""
            designed housing blocks; drew plans for a concert hall; restored earthen mosques; built schools of
            brick; planned garden suburbs; shaded facades with wooden screens; converted warehouses into
            apartments; laid out a market hall; used bamboo in public buildings; won a competition for the
            town hall; surveyed old courtyards; built low-cost homes with local stone"""),
        works=phrases("""
            a concert hall; a housing block around a courtyard; a library of raw concrete; a bus station; a
            school built of earth; a plan for the old harbor"""),
        places=phrases("a design studio; the city planning office; the school of building"),
    ),
    Occupation(
        "potters", "potter", "ceramics", "made vessels or art of clay",
        roles=phrases("ceramic artist; ceramist; maker of stoneware; kiln master"),
        did=phrases("""
            threw stoneware bowls; fired a wood-burning kiln; revived ash glazes; shaped water jars by hand;
            painted tiles for public baths; dug clay from the riverbank; ran a ceramics workshop; taught coil
            building; glazed tea bowls in celadon; made large garden urns; exhibited porcelain lamps; tested
            salt glazes"""),
        works=phrases("""
            a celadon glaze; a wall of painted tiles; tea bowls with ash glaze; a climbing kiln; tall storage
            jars; a set of white porcelain"""),
        places=phrases("a ceramics workshop; a tile factory; the village kiln"),
    ),
    Occupation(
        "weavers", "weaver", "textiles", "made cloth, carpets or tapestries on the loom",
        roles=phrases("textile artist; tapestry maker; master of the loom; carpet maker"),
        did=phrases("""
            worked at the loom; designed tapestries; dyed yarn with indigo; knotted carpets; revived ikat
            patterns; spun wild silk; ran a cooperative for handmade cloth; copied old brocade; taught young
            people the backstrap loom; made shawls of alpaca; exhibited large wall hangings; wrote down
            patterns known only by heart"""),
        works=phrases("""
            a tapestry for the parliament; a pattern book; a cycle of indigo hangings; a silk brocade; a
            carpet of wild flowers; a cooperative of sixty looms"""),
        places=phrases("a textile cooperative; a carpet workshop; a silk mill"),
    ),
    Occupation(
        "beekeepers", "beekeeper", "apiculture", "kept bees",
        roles=phrases("apiarist; honey producer; breeder of queens; master of hives"),
        did=phrases("""
            kept two hundred hives; bred gentle queens; fought mites without chemicals; built clay hives;
            moved colonies to the heather; taught honey harvesting without fire; studied the dances of swarms;
            sold wax and honey; advised orchards on pollination; founded a honey cooperative; collected
            stingless colonies; wrote about nectar plants"""),
        works=phrases("""
            a movable hive; a manual on swarms; a honey cooperative; a strain of gentle queens; a calendar of
            nectar plants; a cure for foulbrood"""),
        places=phrases("an apiary in the hills; a wax refinery; an agricultural college"),
    ),
    Occupation(
        "pilots", "pilot", "aviation", "flew aircraft",
        roles=phrases("aviator; airline captain; flight instructor; bush flyer"),
        did=phrases("""
            flew mail over the mountains; tested gliders; dropped food in flooded valleys; landed seaplanes on
            lakes; set an altitude record; flew medicine to the islands; trained cadets; captained the first
            jet on the route; crossed the ocean alone; surveyed deserts from the air; flew at night without
            radio; carried patients in an air ambulance"""),
        works=phrases("""
            a solo flight across the ocean; an air ambulance service; an airmail route; an altitude record; a
            school of gliding; a landing on a glacier"""),
        places=phrases("the airmail service; a flying school; the national airline"),
        since=1892,
    ),
    Occupation(
        "chess players", "chess player", "the royal game", "played chess in tournaments",
        roles=phrases("grandmaster; tournament champion; master of endgames; problem composer"),
        did=phrases("""
            won the national championship; played board one at the olympiad; drew a match with a grandmaster;
            composed endgame studies; gave simultaneous exhibitions; analyzed the Sicilian defense; played by
            mail with opponents overseas; taught gambits in prisons; won a brilliancy prize; entered blindfold
            tournaments; qualified for the interzonal; edited a magazine of studies"""),
        works=phrases("""
            an opening variation; a book on rook endgames; a queen sacrifice; a victory in the zonal
            tournament; a collection of two-move problems; a blindfold record"""),
        places=phrases("a club above a coffeehouse; the national team; a youth academy of the game"),
    ),
    Occupation(
        "mountaineers", "mountaineer", "climbing", "climbed high mountains",
        roles=phrases("alpinist; high-altitude guide; climber; expedition leader"),
        did=phrases("""
            climbed seven high peaks; opened a route on the north face; guided rope teams; crossed icefields
            on skis; led an expedition without oxygen; rescued climbers in storms; camped on a knife-edge
            ridge; reached the summit in winter; mapped unknown glaciers; built mountain huts; carried loads
            to the upper camp; taught avalanche safety"""),
        works=phrases("""
            the first winter ascent of a great peak; a route up the north face; a chain of mountain huts; a
            rescue on the icefall; a guidebook to the range; a traverse of five summits"""),
        places=phrases("the alpine club; a rescue service; a guiding cooperative"),
    ),
    Occupation(
        "chefs", "chef", "cookery", "cooked as a profession",
        roles=phrases("cook; restaurant owner; head of the kitchen; pastry cook"),
        did=phrases("""
            cooked with millet and smoked fish; ran a restaurant by the docks; wrote recipe columns; baked
            layered pastry; fermented vegetables in clay jars; revived festive dishes; cooked for ocean
            liners; trained kitchen apprentices; served seasonal menus without meat; opened a noodle house;
            judged flavors blindfolded; adapted court recipes for home kitchens"""),
        works=phrases("""
            a cookbook of coastal dishes; a restaurant with nine tables; a sourdough; a dessert of dates and
            cream; a school canteen reform; a menu of forgotten grains"""),
        places=phrases("a hotel kitchen; a harbor restaurant; a cookery school"),
    ),
)  # fmt: skip
