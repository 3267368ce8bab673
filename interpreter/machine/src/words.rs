//! Enums whose variants are words of a history.

/// An enum, with the word each variant is written as. Makes `as_str`, `parse`, and the forms of serde, which are the words.
macro_rules! words {
    (
        $(#[$doc:meta])*
        $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $( $(#[$variant_doc])* #[serde(rename = $word)] $variant, )+
        }

        impl $name {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The variant with that word.
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}
