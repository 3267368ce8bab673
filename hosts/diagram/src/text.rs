//! Text in pictures: made harmless, measured and cut. There are no font files: widths are those of the widest common sans
//! font, DejaVu Sans, plain and bold, so that text set in a narrower one stays inside its box.

/// The font of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Font {
    /// The picture's title.
    Title,
    /// A step's name.
    Name,
    /// A state, as small as everything else and bold.
    State,
    /// Everything else.
    Small,
    /// Conditions and paths.
    Mono,
}

/// Marks a cut.
const ELLIPSIS: char = '…';
/// How many combining marks may follow one another. More would leave their line.
const MARKS: usize = 3;

impl Font {
    /// The size in pixels.
    pub(super) fn size(self) -> i32 {
        match self {
            Self::Title => 17,
            Self::Name => 13,
            Self::State | Self::Small | Self::Mono => 11,
        }
    }

    /// The width of a character, in thousandths of the size.
    fn advance(self, c: char) -> i32 {
        match (self, advance(c)) {
            (_, 0) => 0,
            (Self::Mono, _) if c.is_ascii() => 603,
            (Self::Mono, width) => width.max(1000),
            (Self::Small, width) => width,
            (Self::Title | Self::Name | Self::State, width) => bold(c, width),
        }
    }
}

/// The widths of the characters from space to `~`, in thousandths of the size.
#[rustfmt::skip]
const ASCII: [i32; 95] = [
    318, 401, 460, 838, 637, 951, 780, 275, 391, 391, 500, 838, 318, 361, 318, 337,
    637, 637, 637, 637, 637, 637, 637, 637, 637, 637, 337, 337, 838, 838, 838, 531,
    1000, 685, 687, 699, 771, 632, 576, 775, 752, 295, 295, 656, 558, 863, 749, 788,
    604, 788, 695, 635, 611, 732, 685, 989, 686, 611, 686, 391, 337, 391, 838, 500,
    500, 613, 635, 550, 635, 616, 353, 635, 634, 278, 278, 580, 278, 975, 634, 612,
    635, 635, 412, 521, 393, 634, 592, 818, 592, 592, 525, 637, 337, 637, 838,
];

/// The widths of the same characters in bold.
#[rustfmt::skip]
const BOLD: [i32; 95] = [
    349, 457, 521, 838, 696, 1002, 873, 307, 458, 458, 523, 838, 380, 416, 380, 366,
    696, 696, 696, 696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 581,
    1000, 774, 763, 734, 831, 684, 684, 821, 837, 373, 373, 775, 638, 996, 837, 851,
    733, 851, 771, 721, 683, 813, 774, 1104, 771, 725, 726, 458, 366, 458, 838, 500,
    500, 675, 716, 593, 716, 679, 436, 716, 712, 343, 343, 666, 343, 1042, 712, 688,
    716, 716, 494, 596, 479, 712, 652, 924, 646, 652, 583, 712, 366, 712, 838,
];

/// The width of a bold character whose plain form has that width.
fn bold(c: char, plain: i32) -> i32 {
    let index = (u32::from(c) as usize).checked_sub(0x20);
    index
        .and_then(|index| BOLD.get(index))
        .copied()
        .unwrap_or(plain * 23 / 20)
}

fn advance(c: char) -> i32 {
    let code = u32::from(c);
    if let Some(width) = (code as usize).checked_sub(0x20).and_then(|index| ASCII.get(index)) {
        return *width;
    }
    match code {
        _ if is_combining(c) => 0,
        0x200E | 0x200F => 0,
        0x00A9 | 0x00AE | 0x00BC..=0x00BE | 0x00C6 | 0x00E6 | 0x0152 | 0x0153 => 1100,
        // The multiplication sign is among them.
        0x00A0..=0x024F => 838,
        // The broad letters of Cyrillic.
        0x0416 | 0x041C | 0x0424 | 0x0428 | 0x0429 | 0x042B | 0x042E => 1180,
        0x0436 | 0x043C | 0x0444 | 0x0448 | 0x0449 | 0x044B | 0x044E => 950,
        0x0370..=0x052F => 800,
        0x0530..=0x05FF => 720,
        0x0600..=0x08FF => 1000,
        0x2010..=0x2025 => 600,
        0x2190..=0x22FF | 0x2500..=0x27BF => 860,
        0x1_F000.. => 1300,
        _ => 1000,
    }
}

fn is_combining(c: char) -> bool {
    matches!(u32::from(c),
        0x0300..=0x036F | 0x0483..=0x0489 | 0x0591..=0x05BD | 0x064B..=0x065F | 0x1AB0..=0x1AFF
        | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF | 0xFE00..=0xFE0F | 0xFE20..=0xFE2F)
}

/// Whether a character is invisible, changes the direction of the following text, or is not allowed
/// in XML.
fn is_hidden(c: char) -> bool {
    let code = u32::from(c);
    c.is_control()
        || code & 0xFFFE == 0xFFFE
        || matches!(code,
            0x00AD | 0x061C | 0x115F | 0x1160 | 0x180E | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F
            | 0x3164 | 0xFDD0..=0xFDEF | 0xFEFF | 0xFFF0..=0xFFFB | 0xE_0000..=0xE_0FFF)
}

fn is_right_to_left(c: char) -> bool {
    matches!(u32::from(c), 0x0590..=0x08FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFF | 0x1_0800..=0x1_0FFF | 0x1_E800..=0x1_EFFF)
}

/// The text on one line, without hidden characters.
pub(super) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        let c = if c.is_whitespace() { ' ' } else { c };
        marks = if is_combining(c) { marks + 1 } else { 0 };
        if marks > MARKS || is_hidden(c) || c == ' ' && clean.ends_with(' ') {
            continue;
        }
        clean.push(c);
    }
    clean
}

/// The width in pixels, rounded up.
pub(super) fn width(text: &str, font: Font) -> i32 {
    let thousandths: i32 = text.chars().map(|c| font.advance(c)).fold(0, i32::saturating_add);
    thousandths.saturating_mul(font.size()).saturating_add(999) / 1000
}

/// The text if it is at most `most` pixels wide, otherwise its beginning and `…`.
pub(super) fn cut(text: &str, font: Font, most: i32) -> String {
    if width(text, font) <= most {
        return text.to_owned();
    }
    let room = most.saturating_mul(1000) / font.size() - font.advance(ELLIPSIS);
    let mut used = 0;
    let mut kept: String = text
        .chars()
        .take_while(|&c| {
            used += font.advance(c);
            used <= room
        })
        .collect();
    kept.truncate(kept.trim_end().len());
    kept.push(ELLIPSIS);
    kept
}

/// The text in at most `lines` lines of at most `most` pixels, broken at spaces if it has any. The rest is cut.
pub(super) fn wrap(text: &str, font: Font, most: i32, lines: usize) -> Vec<String> {
    let mut wrapped = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() && wrapped.len() < lines {
        if wrapped.len() + 1 == lines || width(rest, font) <= most {
            wrapped.push(cut(rest, font, most));
            break;
        }
        let end = fitting(rest, font, most);
        let end = rest[..end].rfind(' ').filter(|&space| space * 2 > end).unwrap_or(end);
        let (line, after) = rest.split_at(end);
        wrapped.push(line.trim_end().to_owned());
        rest = after.trim_start();
    }
    wrapped
}

/// How many bytes of the text fit; at least one character.
fn fitting(text: &str, font: Font, most: i32) -> usize {
    let room = most.saturating_mul(1000) / font.size();
    let mut used = 0;
    let over = text.char_indices().skip(1).find(|&(_, c)| {
        used += font.advance(c);
        used + font.advance('M') > room
    });
    over.map_or(text.len(), |(at, _)| at)
}

/// At most this many characters, then `…`.
pub(super) fn shorten(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}{ELLIPSIS}", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// Keeps `→`, `·` and `,` in their place between names, even if the names are written from right to
/// left.
pub(super) fn steady(text: &str) -> String {
    const LEFT_TO_RIGHT: char = '\u{200E}';
    if !text.chars().any(is_right_to_left) {
        return text.to_owned();
    }
    let mut steady = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if matches!(c, '→' | '·' | ',') {
            steady.extend([LEFT_TO_RIGHT, c, LEFT_TO_RIGHT]);
        } else {
            steady.push(c);
        }
    }
    steady
}

/// The text as XML content or attribute.
pub(super) fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in steady(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_show_is_removed() {
        assert_eq!(clean("a\u{202E}b\u{0}c\r\n\td\u{FEFF}\u{200B}\u{FFFE}"), "abc d");
        assert_eq!(clean("e\u{301}\u{301}\u{301}\u{301}\u{301}"), "e\u{301}\u{301}\u{301}");
        assert_eq!(clean("星🎵"), "星🎵");
    }

    #[test]
    fn cut_text_fits() {
        for text in [
            "a name",
            "WWWWWWWWWWWWWWWWWWWWWWWWWW",
            "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii",
            "星星星星星星星星星星星",
        ] {
            for font in [Font::Title, Font::Name, Font::State, Font::Small, Font::Mono] {
                let short = cut(text, font, 90);
                assert!(width(&short, font) <= 90, "{short}");
                assert_eq!(short == text, width(text, font) <= 90);
                let lines = wrap(text, font, 90, 2);
                assert!(
                    lines.len() <= 2 && lines.iter().all(|line| width(line, font) <= 90),
                    "{lines:?}"
                );
            }
        }
    }

    /// Measured in DejaVu Sans Bold, the widest of the fonts that pictures name.
    #[test]
    fn bold_text_is_measured_as_bold() {
        for (text, thousandths) in [
            ("till I fill", 4030),
            ("1 done, 2 failed, 2 cancelled", 15_900),
            ("2×", 1534),
        ] {
            let measured: i32 = text.chars().map(|c| Font::State.advance(c)).sum();
            assert!(measured >= thousandths, "{text}: {measured}");
        }
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(
            wrap("$.amount > 100 && $.country", Font::Mono, 110, 3),
            ["$.amount > 100", "&& $.country"]
        );
        assert_eq!(wrap("", Font::Mono, 110, 3), Vec::<String>::new());
    }

    #[test]
    fn arrows_between_names_from_right_to_left_stay() {
        assert_eq!(steady("a → b"), "a → b");
        assert_eq!(steady("א → ב"), "א \u{200E}→\u{200E} ב");
        assert_eq!(xml("<'&\">"), "&lt;&#39;&amp;&quot;&gt;");
    }
}
