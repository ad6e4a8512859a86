//! The language of a text, as far as stemming needs it.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::split::split;

/// Words of a text that its language is judged by.
const JUDGED: usize = 400;

/// How many stop words must indicate a language: fewer can be chance.
const EVIDENCE: usize = 2;

macro_rules! languages {
    ($($variant:ident $code:literal $algorithm:ident $empty:literal;)*) => {
        /// A language with a stemmer; other languages are treated as English, whose stemmer does little harm.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Language {
            #[default]
            English,
            $($variant,)*
        }

        impl Language {
            const ALL: &[Self] = &[Self::English, $(Self::$variant),*];

            pub fn code(self) -> &'static str {
                match self { Self::English => "en", $(Self::$variant => $code),* }
            }

            pub(super) fn algorithm(self) -> rust_stemmers::Algorithm {
                match self {
                    Self::English => rust_stemmers::Algorithm::English,
                    $(Self::$variant => rust_stemmers::Algorithm::$algorithm),*
                }
            }

            fn empty_words(self) -> &'static str {
                match self { Self::English => ENGLISH, $(Self::$variant => $empty),* }
            }
        }
    };
}

/// Those of Lucene, and question words; without nouns.
const ENGLISH: &str = "a about also am an and any are as at be been but by can could do does for from had has have he her his how i if in into is it its like m may me my no not of on or other our s she should some such t than that the their then there these they this to was we what which who will with would you your";

languages! {
    German "de" German "aber als am an auch auf aus bei bin bis bist das dass dem den der des die du ein eine einem einen einer eines er es für hat ich ihr im in ist kein keine mein mit nach nicht noch nur oder sein sich sie sind so um und uns von vor war was wie wir wird zu zum zur";
    French "fr" French "au aux avec ce ces cette dans de des du elle en est et il ils je la le les leur lui ma mais me mes mon ne nos notre nous on ou par pas pour qu que qui sa se ses son sont sur ta te tu un une vos votre vous";
    Spanish "es" Spanish "al como con de del el ella en entre era es esta este esto fue ha la las lo los mi muy más ni no nos o para pero por que se ser si sin sobre su sus también te un una uno y ya yo";
    Italian "it" Italian "a al alla alle anche che chi ci come con da dal dalla degli dei del della delle di e ed gli ha i il in io la le lo ma mi nel nella non o per più quello questa questo se si sono su sul sulla tra un una è";
    Portuguese "pt" Portuguese "a ao aos as com como da das de do dos e ela ele em entre era essa este eu foi isso já lhe mais mas me na nas no nos não o os ou para pela pelo por que se sem ser seu sua são também tem um uma você";
    Dutch "nl" Dutch "aan al als bij dan dat de deze die dit door een en er haar heb heeft het hij hoe ik in is je kan maar me met mijn naar niet nog nu of om ook op over te tot u uit van voor was wat we wel wordt zijn";
    Swedish "sv" Swedish "att av de den det du efter ej eller en ett för från han har hon i inte jag kan med men mot när nu och om på sig sin som till under upp var vi vid är";
    Danish "da" Danish "af alle at blev de den der det du efter eller en er et for fra ham han har hende hun i ikke jeg kan man med men mig og om op på sig som til var ved vi";
    Norwegian "no" Norwegian "at av da de den der det du eller en er et etter for fra ha han har hun i ikke jeg kan med men mot når og om på seg sin som til var ved vi å";
    Finnish "fi" Finnish "ei ett että hän ja joka jos kuin kun me mutta myös ne niin nyt oli on ovat se sekä sen siitä tai tämä vain";
    Hungarian "hu" Hungarian "a az be csak de egy el ez ha hogy is itt ki le lesz meg mert mint nem nincs és ő";
    Romanian "ro" Romanian "a acest ai al am are ca care ce cu de din dar este fi în la mai nu o pe pentru prin sau se sunt și un";
    Turkish "tr" Turkish "ama bir bu çok da daha de değil gibi için ile ise ki mi ne o ve veya ya";
    Russian "ru" Russian "а без бы был была были было в вам вас во все вы где да для до его ее если есть еще же за и из или им их к как ко когда кто ли мне мы на не нет но о об он она они от по при с со так то только у уже что это я";
    Greek "el" Greek "αλλά από για δεν είναι η θα και με μια να ο οι που σε στη στην στο τα την της το του των";
    Arabic "ar" Arabic "إلى أن أو التي الذي عن على في كان لا ما من هذا هذه هو هي و";
    Tamil "ta" Tamil "அந்த இந்த ஒரு என்று மற்றும்";
}

/// The languages in which a word is a stop word, a bit for each.
static EMPTY_WORDS: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| {
    let mut sets = HashMap::new();
    for language in Language::ALL {
        for word in language.empty_words().split(' ') {
            *sets.entry(word).or_default() |= language.bit();
        }
    }
    sets
});

impl Language {
    /// Detects the language of a text by its script and its stop words; English in doubt.
    pub fn of(text: &str) -> Self {
        let start: String = text.chars().take(JUDGED * 12).collect();
        let by_script = |letter: char| match letter {
            '\u{0370}'..='\u{03ff}' => Some(Self::Greek),
            '\u{0400}'..='\u{04ff}' => Some(Self::Russian),
            '\u{0600}'..='\u{06ff}' => Some(Self::Arabic),
            '\u{0b80}'..='\u{0bff}' => Some(Self::Tamil),
            _ => None,
        };
        let letters = start.chars().filter(|letter| letter.is_alphabetic()).count();
        let mut scripts: Vec<(usize, Self)> = Vec::new();
        for language in start.chars().filter_map(by_script) {
            match scripts.iter_mut().find(|(_, known)| *known == language) {
                Some((count, _)) => *count += 1,
                None => scripts.push((1, language)),
            }
        }
        if let Some((count, language)) = scripts.into_iter().max()
            && count * 2 > letters
        {
            return language;
        }
        if start.is_ascii() && !start.contains(' ') {
            return Self::English;
        }
        Self::by_words(&split(&start))
    }

    fn by_words(words: &[String]) -> Self {
        let words = words.get(..JUDGED).unwrap_or(words);
        let sets: Vec<&u32> =
            words.iter().filter_map(|word| EMPTY_WORDS.get(word.as_str())).collect();
        let count = |language: Self| sets.iter().filter(|set| **set & language.bit() != 0).count();
        let english = count(Self::English);
        let mut best = (english.max(EVIDENCE - 1), Self::English);
        for language in Self::ALL.iter().skip(1) {
            let found = count(*language);
            if found > best.0 {
                best = (found, *language);
            }
        }
        best.1
    }

    pub fn all() -> &'static [Self] {
        Self::ALL
    }

    /// Returns the language of an ISO 639-1 code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|language| language.code() == code)
    }

    /// Returns whether a lower-case word is a stop word.
    pub fn is_empty_word(self, word: &str) -> bool {
        EMPTY_WORDS.get(word).is_some_and(|set| set & self.bit() != 0)
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_a_sentence_is_detected_and_in_doubt_it_is_english() {
        for (text, language) in [
            ("The invoices of the customer are paid.", Language::English),
            ("Die Rechnungen des Kunden sind nicht bezahlt.", Language::German),
            ("Les factures du client ne sont pas payées.", Language::French),
            ("Las facturas del cliente no se han pagado por la empresa.", Language::Spanish),
            ("As faturas do cliente não foram pagas pela empresa.", Language::Portuguese),
            ("Счета клиента не оплачены.", Language::Russian),
            ("Τα τιμολόγια του πελάτη", Language::Greek),
            ("فواتير العميل", Language::Arabic),
            ("list_open_invoices", Language::English),
            ("invoice", Language::English),
            ("未付发票", Language::English),
            ("", Language::English),
        ] {
            assert_eq!(Language::of(text), language, "{text}");
        }
    }

    #[test]
    fn a_language_is_found_by_its_code() {
        for language in Language::ALL {
            assert_eq!(Language::from_code(language.code()), Some(*language));
        }
        assert_eq!(Language::from_code("xx"), None);
    }
}
