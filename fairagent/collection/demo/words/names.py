"""Given names as they are used in many cultures, and family names that are mostly made up in their manner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """One culture's names; where `family_first`, people are called "Qiao Ruolan" and then "Qiao"."""

    women: tuple[str, ...]
    men: tuple[str, ...]
    families: tuple[str, ...]
    family_first: bool = False


def _names(women: str, men: str, families: str, *, family_first: bool = False) -> Names:
    return Names(tuple(women.split()), tuple(men.split()), tuple(families.split()), family_first)


NAMES: dict[str, Names] = {
    "west_african": _names(
        "Abena Adwoa Akosua Chiamaka Efua Esi Folake Ifeoma Kehinde Ngozi Nneka Titilayo Yetunde Zainab",
        "Babatunde Chidi Ebo Emeka Kofi Kojo Kwabena Musa Obinna Olumide Segun Tunde Uche Yaw",
        """
        Adokwei Agyembra Akindara Ansofori Asemota Boadikwe Dankori Eguavwe Ekwunobi Fatokunde Igbokwara
        Kwartemaa Mensariko Nwabuoku Obengwura Odartei Ogunsemi Okwendu Onyekaru Owusaani Sarkodwa
        Tettefio Umealor""",
    ),
    "sahelian": _names(
        "Aïssatou Aminata Awa Bintou Coumba Fatoumata Khady Mariam Ndeye Oumou Penda Rokhaya",
        "Abdoulaye Alioune Babacar Cheikh Demba Ibrahima Lamine Mamadou Ousmane Pape Seydou Souleymane",
        """
        Badjandé Coulidara Dembarou Diakhouma Fadigané Gueyeda Kantéba Koulimar Mbodière Ndiongane
        Sarrakou Sissourou Tambadié Thiambène Togorou Wadeckou""",
    ),
    "east_african": _names(
        "Achieng Akinyi Atieno Halima Mwanaisha Nakato Namono Neema Njeri Nyambura Rehema Wanjiru Zawadi",
        "Baraka Hamisi Juma Kamau Kato Kipchumba Mosi Mwangi Odhiambo Okello Otieno Salim Wafula",
        """
        Barasaki Chelimari Kabugomo Kibetwara Kimathuri Lukwesa Magomwe Mbithori Mugendara Mushabori
        Mwakirembe Namirembwa Ndegwara Nyamokita Obwandi Ochiengwa Ruhindiza Simiyara Tumwekase Wambugori""",
    ),
    "ethiopian": _names(
        "Almaz Aster Birtukan Desta Genet Hirut Konjit Liya Mulu Selamawit Tigist Zewditu",
        "Abebe Berhanu Dawit Fikru Girma Haile Kebede Lemma Mekonnen Solomon Tadesse Yohannes",
        """
        Abrehala Adugnaw Asmerite Beyenaw Demisgar Eshetaye Gebrewold Kifletsen Lemessara Negashaw
        Tekleberu Wondafrer Woldemana Yirgadesse Zerihuna""",
    ),
    "southern_african": _names(
        "Bongani-Rose Chipo Lerato Lindiwe Naledi Nomsa Nyasha Palesa Rudo Tendai Thandeka Zodwa",
        "Farai Jabulani Kagiso Lwazi Mandla Sibusiso Simba Sipho Tafara Tatenda Themba Thulani",
        """
        Chikowero-Dube Dhlamukwa Gumedzwa Khumbuyo Mabhekani Madzongwe Makhathila Mashingura Mathebeni
        Mokgosana Moyandara Ncubane-Sithe Ndabeniso Nkosandla Sibandaru Tshabanga Zhuwankala""",
    ),
    "arabic": _names(
        "Amal Dalia Fadwa Hanan Houda Laila Malika Nadia Rania Salma Samira Widad Yasmina Zahra",
        "Adel Bilal Farid Hamza Idris Jamal Karim Mourad Nabil Omar Rachid Sami Tariq Youssef",
        """
        Abulkhoury Benharrat Bouzidane Chahrouri El-Ghannami El-Mezraoui El-Sebahy Fahmawi Haddouri
        Khatibeh Lahlimane Maaloufi Nasrallawi Qasimeh Rahbany-Saad Sabbaghi Shahinour Tazioui Zerhounane
        Zoghbani""",
    ),
    "indian": _names(
        """
        Anjali Bhavani Deepa Gauri Indira Kamala Lakshmi Meenakshi Nandini Padma Revathi Savitri Shanta
        Usha""",
        "Arun Balaji Dinesh Ganesh Harish Kishore Mohan Narayan Prakash Raghu Sanjay Suresh Venkat Vinod",
        """
        Agarkhedkar Balakrishanth Bhandarwal Chaturvadi Deshmukhi Gokarnath Hegdekar Iyengaran Jadhavkar
        Kulkarnath Mahapatrik Nambiyath Padmanabar Rajpurekar Saxenwala Shanmugath Thakorlal Upadhyak
        Venugopath Vishwamitri""",
    ),
    "pakistani": _names(
        "Amna Bushra Farzana Gulnaz Kishwar Mehnaz Nasreen Parveen Rubina Saima Shaista Zubaida",
        "Asif Faisal Ghulam Hamid Imtiaz Javed Khalid Nadeem Rashid Saleem Tanvir Zafar",
        """
        Abbasani Bhattiwal Chaudhrani Durranzai Gilanwar Hashmipur Jatoiwala Kazmiri Lodhiwal Mazarwal
        Niazpur Qureshwal Sethiwala Soomrani Talpurani""",
    ),
    "bengali": _names(
        "Anwara Farida Hasina Kohinoor Laboni Mousumi Nilufar Rahela Rokeya Shirin Sultana Taslima",
        "Abul Anisur Faruk Habib Jasim Kamrul Mahbub Mizan Rafiq Selim Shahid Tapan",
        """
        Akandaz Bhuiyath Chakladar Dastigar Gazipuri Howladan Khondkari Majumdal Mollakar Patowar
        Sarkerdas Shikdaran Talukdan""",
    ),
    "chinese": _names(
        "Baozhen Cuihua Huilan Jingyi Meilian Peiwen Qiuyue Ruolan Shuhua Suyin Wanrong Xiulan Yuzhen Zhilan",
        """
        Boyuan Changming Dezhi Guoliang Haoran Jianhong Kaiwen Liangyu Mingde Qiwei Shaoqing Weilun
        Yaozong Zhenhai""",
        "Bai Cang Ding Fei Geng Hua Kuang Lian Meng Nie Ouyang Ping Qiao Rong Shen Tai Wen Xiang Yue Zuo",
        family_first=True,
    ),
    "japanese": _names(
        "Akiko Chiyo Fumiko Hanae Haruko Kazue Kiyomi Masako Natsuko Sayuri Setsuko Tomoe Yoshie Yukiko",
        "Daigo Eiichi Hideo Isamu Junji Kenzo Makoto Noboru Osamu Ryuji Shigeru Takeo Toru Yasuo",
        """
        Aonuma Asakuri Ebisuda Fujinomi Hamasawa Hatakeno Iwagoshi Kasumori Kirihata Kuzuyama Minegawa
        Mizushiro Nagatomi Onizawa Sakitani Shirogane Tachihara Tsukimori Umekawa Wadazaki""",
        family_first=True,
    ),
    "korean": _names(
        """
        Bo-kyung Eun-sook Hae-won Hye-rim In-ja Jeong-ae Kyung-ja Mi-ran Myung-hee Soon-ok Sun-young
        Yeon-joo""",
        """
        Byung-ho Chang-min Dae-sung Gi-tae Hyun-woo Jae-ho Ki-young Min-jun Sang-chul Sung-min Tae-il
        Young-soo""",
        "Bang Cha Do Eom Gil Gwak Hyun Jegal Ma Namgung Noh Pyo Sagong Seonwoo Tak Wi",
        family_first=True,
    ),
    "vietnamese": _names(
        """
        Bích-Liên Diệu-Hương Hồng-Nhung Kim-Cúc Lan-Anh Mai-Chi Ngọc-Lan Phương-Thảo Quỳnh-Nga Thanh-Hà
        Thu-Hiền""",
        """
        Anh-Dũng Bảo-Long Công-Thành Đình-Phúc Gia-Huy Hữu-Lộc Minh-Khôi Quang-Hải Tấn-Tài Trọng-Nghĩa
        Văn-Bình""",
        "Âu Bạch Chử Cù Diêm Doãn Giáp Khổng Khúc Mạc Nghiêm Ninh Quách Tạ Thạch Ung",
        family_first=True,
    ),
    "indonesian": _names(
        "Ayu Citra Dewi Endang Fitri Kartini Lestari Melati Ningsih Ratna Sari Wulan",
        "Adi Bambang Budi Darma Eko Gunawan Hendra Joko Rudi Slamet Surya Wayan",
        """
        Adiwongso Brotowijaya Cakranegoro Darmokusuma Hadisaputro Kertowinoto Kusumadirja Mangunsari
        Notowibowo Poncosudarmo Reksoatmo Sastrowinoto Tirtohadi Wiryokusumo""",
    ),
    "filipino": _names(
        "Althea Corazon Divina Imelda Ligaya Luzviminda Marites Milagros Perla Rosalinda Tala Violeta",
        "Alon Amado Benigno Crisanto Dante Efren Isagani Leandro Marcelo Nestor Rodel Virgilio",
        """
        Alcaranza Bagongsol Batungdilim Caballesa Dimaguiba Galangpuno Lacsamuya Macaraling Magsinoy
        Panganibay Quiambawan Salonghari Tanglawin Tumbagahan""",
    ),
    "persian": _names(
        "Azadeh Farangis Forough Golnar Homa Leyla Mahin Nasrin Parvin Roya Shirin Simin",
        "Arash Bahram Behzad Dariush Farhad Hushang Jahangir Kaveh Manuchehr Nader Parviz Siavash",
        """
        Amirshahani Bakhtiyaran Daneshpar Farrokhnam Golestaneh Jahandari Khorasandel Mirfenderan
        Navabshar Parsayeh Sepehrnia Shahrvandi Tabrizpour Zarringoft""",
    ),
    "turkish": _names(
        "Ayşe Belgin Defne Emine Feride Gülten Hatice Lale Nilgün Sevim Şükran Zeynep",
        "Ahmet Bülent Cemal Demir Ferit Halil İlhan Kemal Murat Nuri Orhan Selim",
        """
        Akbulan Bozdemirci Çalışoğan Dağlarcan Ekmekbaş Gökçenay Karaduvar Kılıçbey Özdağlı Sarıçiçek
        Taşkıranel Yağmurca Yıldızhan""",
    ),
    "german": _names(
        "Adelheid Brigitte Dorothea Elfriede Gertrud Hannelore Ilse Käthe Liselotte Mathilde Renate Ursula",
        "Albrecht Dietmar Ernst Friedhelm Gerhard Heinrich Jürgen Konrad Lothar Ottmar Rainer Wilhelm",
        """
        Achtermoor Birkenfurth Dornwangen Ebersloh Felderhoff Gansenau Hackebrecht Holzapfelin Kaltenruh
        Lindenstolz Mühlbrook Nesselrand Oberwinkel Pfeffergrund Rautenhain Sandbrügge Tannhölzer
        Wiesenthaler""",
    ),
    "french": _names(
        "Adèle Bernadette Céline Delphine Eugénie Geneviève Hortense Lucile Madeleine Odette Solange Yvonne",
        "Alphonse Bertrand Édouard Fabrice Gaston Honoré Julien Léopold Maurice Octave René Thibault",
        """
        Aubrivault Bellecombre Boisrenaud Chantelouve Courtabeau Desmarivaux Fontrailles Grandvauger
        Hautecoudre Lamirandière Marivault Montfaubert Peyrelongue Quentignac Roquemorel Sauvecanne
        Trémolines Vaucourbe""",
    ),
    "english": _names(
        """
        Agnes Beatrice Constance Edith Florence Harriet Judith Lilian Mabel Nora Phyllis Rosalind Sylvia
        Winifred""",
        """
        Alfred Bernard Clement Desmond Edgar Gilbert Howard Leonard Norman Percy Ralph Stanley Vernon
        Walter""",
        """
        Ashcombury Barrowclift Bexenhall Brackenford Carnabeck Coldwaithe Dunsterfell Eddlestow
        Fernihough-Lane Garrowby Hallamshaw Inglesby-Marr Kettlebrook Larkenfield Mossgrave Netherwick
        Oakendale Pemberlow Quarrendon Rookhampton Saltersby Tarrensby Thornquill Underbarrow Wexcombe
        Yarnborough""",
    ),
    "irish": _names(
        "Aoife Bríd Caoimhe Deirdre Eithne Fionnuala Gráinne Maeve Nuala Oonagh Róisín Sinéad",
        "Brendan Cathal Declan Eamon Fergus Kieran Lorcan Niall Oisín Padraig Ruairí Tadhg",
        """
        Brannagher Corrigallan Dunleary Fallonby Gilhoolan Kilbrannock Lenaghane MacDarrigan McElhargy
        O'Brannahan O'Cullinane O'Darragh O'Fearnally O'Shaunessan Tierneymore""",
    ),
    "italian": _names(
        "Adalgisa Bianca Carlotta Donatella Elvira Fiorella Ginevra Ileana Loredana Ornella Rosalba Teresa",
        "Aldo Beppe Cesare Dario Ennio Fulvio Gino Ivano Luciano Oreste Renzo Vittorio",
        """
        Abbatezio Belcampari Bonfrassi Calderighi Castagnoletti Dellarocchia Fornaciari-Bo Gambarossi
        Lanzafioro Malaspinelli Montebruni Pietravalle Roccaferri Salvaterrini Tagliacarne Valdonera""",
    ),
    "spanish": _names(
        """
        Amparo Beatriz Consuelo Dolores Esperanza Graciela Inés Jimena Luz Mercedes Pilar Rosario Soledad
        Ximena""",
        """
        Álvaro Baltasar Darío Emiliano Fermín Gonzalo Horacio Ignacio Joaquín Leandro Matías Rodrigo
        Santiago Tomás""",
        """
        Alcabréñez Arrizabal Barrientosa Carrascoso Cisnerales Echaverría Fuenmayoral Galarzuela
        Huertapelayo Iturbelarra Landaverdes Montesclaro Navascuero Olivaresco Peñaranza Quintanillo
        Robledares Saldívarez Tordesilla Urrutiaga Valderrueda Zamoranero""",
    ),
    "nordic": _names(
        "Astrid Birgitta Dagny Elin Gunhild Hedvig Ingrid Karin Liv Ragnhild Sigrun Solveig",
        "Anders Birger Einar Folke Gunnar Halvor Ivar Kjell Leif Olav Sigurd Torbjörn",
        """
        Almstrandh Bergkvisten Dalnäsbo Ekelunde Fjelldalen Granhaug Hallingsund Kvistgården Lindeberget
        Nordalvik Rosenhjelm Sandvikdal Skogtveit Strömsholt Ulvebakk Västerlid""",
    ),
    "polish": _names(
        "Bogumiła Celina Danuta Elżbieta Grażyna Halina Jadwiga Krystyna Ludmiła Małgorzata Wanda Zofia",
        "Andrzej Bogdan Czesław Edmund Grzegorz Henryk Jerzy Kazimierz Leszek Mieczysław Stanisław Zygmunt",
        """
        Barańczewicz Brzozodolski Czarnolaski Dąbrowiecki Gałczyniak Grabowiński Jaworzecki Kalinodolski
        Lipnicewicz Modrzewianin Olszański Piotrkowiak Sosnodębski Wierzbanowicz Zawilczak""",
    ),
    "greek": _names(
        "Anthi Despina Eleni Fotini Kalliope Katerina Marika Olympia Photini Stavroula Vasiliki Zoe",
        "Andreas Christos Dimitris Fotis Giorgos Ilias Kostas Manolis Nikos Pavlos Stelios Thanasis",
        """
        Alexandropis Anagnostidas Dimakopis Galanakelis Kalogeridas Karavelias Lambroudis Mavroliadis
        Panoriotis Papavrettos Stamatelis Theofilakis Vlachopoulis Xenakidis""",
    ),
    "brazilian": _names(
        "Adriana Benedita Conceição Dalva Elza Iracema Jurema Lindalva Marlene Neusa Raimunda Zilda",
        """
        Ademir Benedito Claudionor Djalma Evaristo Geraldo Jurandir Lourival Nilson Raimundo Sebastião
        Valdemar""",
        """
        Albuquerga Araribóia Bittencorte Cavalcandra Damascenha Figueirola Guimaranes-Luz Jatobá
        Laranjeiro Meirelhos Nogueirão Pitangares Sapucaia-Reis Taquaral Vasconcerra""",
    ),
    "andean": _names(
        "Asunta Bartolina Eulalia Julieta Killa Nayra Nina Paulina Qori Sami Tomasa Urpi",
        "Amaru Ciriaco Eusebio Inti Kusi Lucho Melchor Nicanor Rumi Saturnino Túpac Wayra",
        """
        Apazuna Callisaya-Ruiz Choquehuari Condoriluz Huamanchura Limachiri Mamaniqui Nina-Quispel
        Paucarpura Quispihuara Sullcahuanca Ticonarayo Waywashi Yupanquira""",
    ),
    "caribbean": _names(
        "Althea Beverley Claudette Doreen Enid Hyacinth Ionie Lorna Merle Olive Pearline Una",
        "Alston Barrington Clifton Delroy Errol Garfield Lascelles Neville Orville Rupert Trevor Winston",
        """
        Allenbridge Brathwick Campbellton Dacostra Fairclough-Reid Gordonby Hinchcliff Lindorest McFarlow
        Nembharst Palmerston-Lee Rowemore Sinclairs Tulloby Wedderlow""",
    ),
    "haitian": _names(
        "Célianne Darline Ernestine Fabiola Guerda Islande Lunise Mirlande Nadège Roseline Yolette Yvrose",
        "Anténor Célestin Dieudonné Évens Frantz Gérard Jocelyn Luckner Mackendy Réginald Stenio Wilner",
        """
        Balthazin Cadetrel Déjoisin Estimable Fleurimond Jean-Marcel Lafontante Ménardieu Narcissaint
        Pierrelus Saint-Cloux Toussainval Valcourier""",
    ),
    "maori": _names(
        "Anahera Aroha Hinemoa Huia Kiri Marama Mereana Ngaire Rangimarie Tui Waimarie Whetu",
        "Hemi Hone Ihaia Kereama Matiu Nikau Rawiri Tama Tane Tipene Wiremu",
        """
        Hakaraia-Moore Kahurangi Manaia Ngarimua Parekura Rauhina Tamaterangi Taratoa-Wells Te-Aumihi
        Te-Rangihau Waaka-Pohatu Whakarua""",
    ),
    "pacific": _names(
        "Alisi Fetu Lavinia Leilani Litia Mele Mereoni Salote Sina Tala Talei Vasiti",
        "Afa Epeli Filipe Ioane Josefa Lote Manu Sefo Semisi Sione Tevita Viliame",
        """
        Aiolupo Fakatava-Moa Faleafaga Havelupe Kaumaitoti Lealaiva Leotalima Manumaleuna Nailatiko
        Raikuna Seruvatui Taumalolo-Fe Tuiasau Tuivanua Vakaloto Waqanika""",
    ),
    "melanesian": _names(
        "Agatha Bona Dika Elisa Geua Kila Loujaya Miriam Naomi Serah Vavine",
        "Apollos Bernard Elias Gabriel Ila Kaman Lahui Michael Paias Renagi Vagi",
        """
        Aisoloma Daremo Gavera-Kila Haurama Kapinari Kerekau Lohiama Morea-Vai Nombriwa Oaharo Sapakuri
        Taukuro Wanduoma""",
    ),
}
