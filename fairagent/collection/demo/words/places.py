"""Regions, countries and cities of the demo collection. They are real, the institutions are not."""

from __future__ import annotations

from dataclasses import dataclass

REGIONS = ("Africa", "Asia", "Europe", "Latin America and the Caribbean", "Northern America", "Oceania")


@dataclass(frozen=True, slots=True)
class Country:
    """A country, what its people are called, where they live, and the name lists that are usual there.

    The United States have two rows, because they have more people to be found in such collections.
    """

    name: str
    demonym: str
    region: str
    cities: tuple[str, ...]
    cultures: tuple[str, ...]


_TABLE = """
Africa | Ghana | Ghanaian | Accra, Kumasi, Tamale, Cape Coast | west_african
Africa | Nigeria | Nigerian | Lagos, Ibadan, Kano, Enugu | west_african
Africa | Senegal | Senegalese | Dakar, Thiès, Saint-Louis | sahelian
Africa | Mali | Malian | Bamako, Ségou, Mopti | sahelian
Africa | Kenya | Kenyan | Nairobi, Mombasa, Kisumu, Nakuru | east_african
Africa | Tanzania | Tanzanian | Dar es Salaam, Arusha, Dodoma, Tanga | east_african
Africa | Uganda | Ugandan | Kampala, Jinja, Gulu | east_african
Africa | Ethiopia | Ethiopian | Addis Ababa, Gondar, Mekelle, Jimma | ethiopian
Africa | Zimbabwe | Zimbabwean | Harare, Bulawayo, Mutare | southern_african
Africa | South Africa | South African | Durban, Pretoria, Cape Town, Kimberley | southern_african, english
Africa | Egypt | Egyptian | Cairo, Alexandria, Luxor, Mansoura | arabic
Africa | Morocco | Moroccan | Rabat, Fez, Tangier, Agadir | arabic
Asia | India | Indian | Mumbai, Chennai, Kolkata, Jaipur, Lucknow | indian
Asia | Pakistan | Pakistani | Lahore, Karachi, Peshawar, Multan | pakistani
Asia | Bangladesh | Bangladeshi | Dhaka, Chittagong, Sylhet, Khulna | bengali
Asia | China | Chinese | Shanghai, Chengdu, Wuhan, Xiamen, Harbin | chinese
Asia | Japan | Japanese | Osaka, Kyoto, Sapporo, Nagasaki | japanese
Asia | South Korea | South Korean | Seoul, Busan, Daegu, Gwangju | korean
Asia | Vietnam | Vietnamese | Hanoi, Huế, Da Nang, Cần Thơ | vietnamese
Asia | Indonesia | Indonesian | Jakarta, Surabaya, Bandung, Makassar | indonesian
Asia | the Philippines | Filipino | Manila, Cebu, Davao, Iloilo | filipino
Asia | Iran | Iranian | Tehran, Shiraz, Isfahan, Tabriz | persian
Asia | Turkey | Turkish | Ankara, Izmir, Bursa, Trabzon | turkish
Asia | Lebanon | Lebanese | Beirut, Tripoli, Sidon | arabic
Europe | Germany | German | Leipzig, Hamburg, Cologne, Dresden | german
Europe | Austria | Austrian | Vienna, Graz, Linz | german
Europe | France | French | Lyon, Nantes, Lille, Marseille | french
Europe | Belgium | Belgian | Ghent, Liège, Antwerp | french
Europe | the United Kingdom | British | Leeds, Bristol, Glasgow, Cardiff, Norwich | english
Europe | Ireland | Irish | Dublin, Cork, Galway | irish
Europe | Italy | Italian | Turin, Bologna, Genoa, Palermo | italian
Europe | Spain | Spanish | Seville, Zaragoza, Bilbao, Valencia | spanish
Europe | Sweden | Swedish | Gothenburg, Uppsala, Malmö | nordic
Europe | Norway | Norwegian | Bergen, Oslo, Trondheim | nordic
Europe | Poland | Polish | Kraków, Łódź, Poznań, Lublin | polish
Europe | Greece | Greek | Athens, Patras, Volos | greek
Latin America and the Caribbean | Brazil | Brazilian | Recife, Salvador, Porto Alegre, Belém | brazilian
Latin America and the Caribbean | Mexico | Mexican | Puebla, Oaxaca, Guadalajara, Mérida | spanish
Latin America and the Caribbean | Colombia | Colombian | Medellín, Cali, Bogotá | spanish
Latin America and the Caribbean | Peru | Peruvian | Arequipa, Cusco, Lima, Trujillo | andean, spanish
Latin America and the Caribbean | Bolivia | Bolivian | La Paz, Sucre, Cochabamba | andean
Latin America and the Caribbean | Argentina | Argentine | Rosario, Córdoba, Mendoza | spanish, italian
Latin America and the Caribbean | Chile | Chilean | Valparaíso, Concepción, Santiago | spanish
Latin America and the Caribbean | Jamaica | Jamaican | Kingston, Montego Bay, Mandeville | caribbean
Latin America and the Caribbean | Haiti | Haitian | Port-au-Prince, Jacmel, Cap-Haïtien | haitian
Northern America | the United States | American | Chicago, Baltimore, Seattle | english, irish, chinese
Northern America | the United States | American | Atlanta, El Paso, Detroit | english, spanish, west_african
Northern America | Canada | Canadian | Halifax, Winnipeg, Montreal | english, french, indian, haitian
Oceania | Australia | Australian | Perth, Adelaide, Hobart, Brisbane, Darwin | english, irish, greek
Oceania | New Zealand | New Zealand | Dunedin, Wellington, Napier, Rotorua | english, maori
Oceania | Fiji | Fijian | Suva, Lautoka, Nadi | pacific, indian
Oceania | Samoa | Samoan | Apia, Salelologa | pacific
Oceania | Tonga | Tongan | Nukuʻalofa, Neiafu | pacific
Oceania | Papua New Guinea | Papua New Guinean | Port Moresby, Lae, Rabaul | melanesian
"""


def _countries() -> tuple[Country, ...]:
    rows = [[cell.strip() for cell in line.split("|")] for line in _TABLE.strip().splitlines()]
    return tuple(
        Country(name, demonym, region, tuple(cities.split(", ")), tuple(cultures.split(", ")))
        for region, name, demonym, cities, cultures in rows
    )


COUNTRIES = _countries()
