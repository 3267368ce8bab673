//! The codes of diagnostics. A code's number never changes and is never reused.
//!
//! Groups: 00 text, 01 fields and types, 02 names and edges, 03 data, 04 conditions, 05 tasks and errors, 06 limits,
//! 07 resources; 08 is free for later codes.

use super::Severity;
use starbridge_flow::diagnostics::DiagnosticCode;
use starbridge_flow::syntax::SyntaxCode;

macro_rules! codes {
    ($($variant:ident $id:literal $severity:ident $title:literal;)*) => {
        /// Which kind of problem a diagnostic is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            /// Every code, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The code as text: `FDL` and four digits.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// How bad a problem of this kind is.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// The kind of problem in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// The page that explains it, as Markdown.
            pub fn page(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!("../../../docs/diagnostics/", $id, ".md")),)*
                }
            }
        }
    };
}

codes! {
    Syntax "FDL0001" Error "text is not JSON";
    Comment "FDL0002" Error "comment in JSON";
    TrailingComma "FDL0003" Error "trailing comma";
    DuplicateKey "FDL0004" Error "key given twice";
    NumberRange "FDL0005" Error "number out of range";
    NestedTooDeep "FDL0006" Error "text nested too deep";
    TooLarge "FDL0007" Error "definition too large";
    Encoding "FDL0008" Error "text in a wrong encoding";
    Yaml "FDL0009" Error "text is not YAML";
    YamlTag "FDL0010" Warning "unknown YAML tag";
    YamlAlias "FDL0011" Error "YAML aliases grow too large";
    YamlDocuments "FDL0012" Error "more than one YAML document";
    YamlKey "FDL0013" Error "key that is no string";
    Empty "FDL0014" Error "nothing in the file";
    ForeignLanguage "FDL0015" Error "definition in another language";
    MissingField "FDL0101" Error "missing field";
    UnknownField "FDL0102" Error "unknown field";
    MisplacedField "FDL0103" Error "field in the wrong place";
    WrongType "FDL0104" Error "wrong type of value";
    UnknownVersion "FDL0105" Error "unknown version";
    NotAFlow "FDL0106" Error "not a flow";
    UnknownStepType "FDL0107" Error "unknown type of step";
    UnknownWord "FDL0108" Error "unknown word";
    OutOfRange "FDL0109" Error "value out of its range";
    EmptyText "FDL0110" Error "empty text";
    ExcludingFields "FDL0111" Error "fields that exclude each other";
    NoneOfFields "FDL0112" Error "one of several fields is missing";
    BadTimestamp "FDL0113" Error "not a timestamp";
    BadDuration "FDL0114" Error "not a duration";
    LoopStep "FDL0115" Error "`loop` step";
    CatchSteps "FDL0116" Error "`steps` in a catch";
    EndNotAllowed "FDL0117" Error "`end` where nothing goes on";
    BadSchema "FDL0118" Error "not a JSON Schema";
    RemoteSchema "FDL0119" Error "schema refers to another document";
    DuplicateName "FDL0201" Error "name given twice";
    BadName "FDL0202" Error "not a name";
    UnknownTarget "FDL0203" Error "`goto` to an unknown step";
    TargetElsewhere "FDL0204" Error "`goto` out of its list";
    Unreachable "FDL0205" Warning "step can never run";
    FallsIntoHandler "FDL0206" Warning "normal course runs into an error handler";
    NoSteps "FDL0207" Error "empty list of steps";
    NoBranches "FDL0208" Error "nothing to choose from or to run";
    UnknownDependency "FDL0209" Error "unknown branch in `dependsOn`";
    DependencyCycle "FDL0210" Error "branches wait for each other";
    DependsOnItself "FDL0211" Error "branch depends on itself";
    DuplicateBranch "FDL0212" Error "two branches of one name";
    WaitForTooMany "FDL0213" Error "`waitFor` can never be met";
    DependencyTwice "FDL0214" Warning "dependency given twice";
    DuplicateConcurrencyKey "FDL0215" Error "concurrency key given twice";
    BadPath "FDL0301" Error "not a path";
    BadTemplate "FDL0302" Error "not a template";
    DuplicateTarget "FDL0303" Error "target given twice";
    NoLocalHere "FDL0304" Warning "`$local` where there is none";
    NoSource "FDL0305" Error "mapping without source";
    ItemIsIndex "FDL0306" Error "`item` and `index` of one name";
    PathExpected "FDL0307" Error "path expected";
    BadParam "FDL0308" Error "not a path in `serviceParams`";
    TargetIsPath "FDL0309" Warning "target looks like a path";
    LooksLikePath "FDL0310" Warning "constant looks like a path";
    UnknownContext "FDL0311" Warning "unknown member of `$context`";
    LocalIsList "FDL0312" Warning "`$local` is a list here";
    LocalIsEmpty "FDL0313" Warning "`$local` is empty here";
    UnknownErrorMember "FDL0314" Warning "an error has only `error` and `cause`";
    PlainTemplate "FDL0315" Warning "template without parts";
    FindsNothing "FDL0316" Warning "path finds nothing";
    UnfitData "FDL0317" Warning "data of a type its place has no use for";
    BadCondition "FDL0401" Error "not a condition";
    AlwaysTrue "FDL0402" Warning "condition always holds";
    AlwaysFalse "FDL0403" Warning "condition never holds";
    RepeatedCondition "FDL0404" Warning "condition repeated";
    NoLength "FDL0405" Warning "condition on a length";
    NeverTrue "FDL0406" Warning "comparison that no value changes";
    OtherType "FDL0407" Warning "comparison with another type";
    NoResource "FDL0501" Error "task without resource";
    HeartbeatMisplaced "FDL0502" Error "`heartbeatSeconds` without heartbeats";
    WaitSecondsMisplaced "FDL0503" Error "`waitSeconds` without a queue";
    PollWithCallback "FDL0504" Error "`poll` with a callback";
    PollWithoutEnd "FDL0505" Warning "`poll` without `until`";
    ChildNotAlone "FDL0506" Error "`child` beside other fields";
    ChildMisplaced "FDL0507" Error "`child` without a child flow";
    ValuesTwice "FDL0508" Error "`values` in two policies";
    AllNotAlone "FDL0509" Warning "`FnF.ALL` beside other errors";
    UnreachablePolicy "FDL0510" Warning "retry policy never used";
    UnreachableCatch "FDL0511" Warning "catch never used";
    Uncatchable "FDL0512" Warning "error that no step has";
    NoErrors "FDL0513" Error "no errors named";
    ErrorTwice "FDL0514" Warning "error named twice";
    IntervalOverMax "FDL0515" Warning "interval over its maximum";
    NoValues "FDL0516" Error "no values to try";
    UnknownEngineError "FDL0517" Warning "unknown `FnF.` error";
    ErrorMappingsUnused "FDL0518" Warning "`errorMappings` without a catch";
    BackoffIgnored "FDL0519" Warning "field without effect under this backoff";
    ForeignErrorName "FDL0520" Warning "error name of another language";
    UnknownParam "FDL0521" Warning "member of `serviceParams` that nothing reads";
    TokenNotSent "FDL0522" Warning "callback whose token nobody gets";
    TooManySteps "FDL0601" Error "too many steps";
    TooManyLevels "FDL0602" Error "steps nested too deep";
    TooManyBranches "FDL0603" Error "too many branches";
    WaitTooLong "FDL0604" Warning "wait over the limit";
    DataTooDeep "FDL0605" Error "data nested too deep";
    TextCut "FDL0606" Warning "text will be cut";
    TimeoutTooLong "FDL0607" Error "time over the limit";
    SchemaTooCostly "FDL0608" Error "schema takes too many steps";
    NegativeWait "FDL0609" Warning "wait of less than no time";
    TooManyKeys "FDL0610" Error "too many concurrency keys";
    Placeholder "FDL0701" Warning "placeholder left in a resource";
    BadResource "FDL0702" Error "incomplete resource";
    SecretNotResolved "FDL0703" Warning "secret where none is resolved";
    NotAnswered "FDL0704" Warning "resource that nothing answers to";
    CommandWithBlank "FDL0705" Warning "arguments in the name of a program";
    PartMisplaced "FDL0706" Error "part of a resource that can't be filled in";
}

impl Code {
    /// The code with that text, in upper or lower case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.as_str().eq_ignore_ascii_case(text))
    }
}

impl DiagnosticCode for Code {
    fn severity(self) -> Severity {
        Code::severity(self)
    }
}

impl From<SyntaxCode> for Code {
    fn from(code: SyntaxCode) -> Self {
        match code {
            SyntaxCode::Syntax => Self::Syntax,
            SyntaxCode::Comment => Self::Comment,
            SyntaxCode::TrailingComma => Self::TrailingComma,
            SyntaxCode::DuplicateKey => Self::DuplicateKey,
            SyntaxCode::NumberRange => Self::NumberRange,
            SyntaxCode::NestedTooDeep => Self::NestedTooDeep,
            SyntaxCode::TooLarge => Self::TooLarge,
            SyntaxCode::Encoding => Self::Encoding,
            SyntaxCode::Yaml => Self::Yaml,
            SyntaxCode::YamlTag => Self::YamlTag,
            SyntaxCode::YamlAlias => Self::YamlAlias,
            SyntaxCode::YamlDocuments => Self::YamlDocuments,
            SyntaxCode::YamlKey => Self::YamlKey,
            SyntaxCode::Empty => Self::Empty,
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_in_order_and_are_found_by_their_text() {
        assert!(Code::ALL.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()));
        for code in Code::ALL {
            assert_eq!(Code::parse(&code.as_str().to_lowercase()), Some(*code));
            assert!(!code.title().is_empty());
        }
        assert_eq!(Code::parse("FDL9999"), None);
    }

    #[test]
    fn problems_of_texts_keep_their_severity() {
        for code in SyntaxCode::ALL {
            assert_eq!(Code::from(code).severity(), DiagnosticCode::severity(code), "{code:?}");
        }
    }
}
