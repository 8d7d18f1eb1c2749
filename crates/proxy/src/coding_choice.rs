//! Which coding of a representation answers who takes these codings: the one place that decides it (RFC 9110 §12.5.3).
//!
//! What is there already goes before what would have to be made; of what has to be made, what is made quickly goes first. So the
//! first who asks has something short at once, and who asks again the shortest there is.

use cache::EncodingState;
use message::{FieldName, FieldsView, Status};
use rules::{AcceptedCodings, AcceptedDeltas, ContentCoding, DeltaCoding, ResponseDirectives, content_coding};
use wire::has_length;

use crate::compress_settings::CompressSettings;

/// In which order codings are made that somebody waits for.
const QUICKEST_FIRST: [ContentCoding; 3] = [ContentCoding::Zstd, ContentCoding::Gzip, ContentCoding::Brotli];

/// The same of those by a dictionary.
const QUICKEST_DELTA_FIRST: [DeltaCoding; 2] = [DeltaCoding::Zstd, DeltaCoding::Brotli];

/// What can be made of a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Codable<'a> {
    /// In which coding it is.
    pub(crate) stored: ContentCoding,
    /// Into which others it can be brought, the dearest first; its text always can be had.
    codings: &'a [ContentCoding],
}

/// What answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodingChoice {
    /// The representation as it is. `is_final`: nothing better will come.
    AsItIs { is_final: bool },
    /// What was made of it.
    Made { coding: ContentCoding, is_final: bool },
    /// It is to be made.
    Make(ContentCoding),
}

impl<'a> Codable<'a> {
    /// `length`: of the body, if it is known. `None`: it goes out as it is, whoever asks.
    pub(crate) fn of(
        settings: &'a CompressSettings,
        status: Status,
        fields: FieldsView<'_>,
        length: Option<u64>,
    ) -> Option<Codable<'a>> {
        if status == Status::PARTIAL_CONTENT || !has_length(status) {
            return None;
        }
        let stored = ContentCoding::said_by(fields)?;
        let is_of_size = length.is_none_or(|length| {
            length <= settings.bytes_max && (stored != ContentCoding::Identity || length >= settings.bytes_min)
        });
        let is_worth_it = || {
            let content_type = fields.get(FieldName::ContentType).unwrap_or_default();
            content_coding::is_among_types(content_type, &settings.types)
                && !ResponseDirectives::parse(fields).no_transform
        };
        let codings = if is_of_size && is_worth_it() { &settings.codings[..] } else { &[] };
        (stored != ContentCoding::Identity || !codings.is_empty()).then_some(Codable { stored, codings })
    }

    /// The same where nothing but its text can be had of it.
    pub(crate) fn of_text_alone(self) -> Codable<'static> {
        Codable { stored: self.stored, codings: &[] }
    }

    /// `states`: of what was made of it, at the places of their numbers.
    pub(crate) fn choose(
        &self,
        accepted: AcceptedCodings,
        states: [EncodingState; ContentCoding::ALL.len()],
    ) -> CodingChoice {
        let can_be = |coding: ContentCoding| {
            coding == self.stored
                || states[coding as usize] != EncodingState::Pointless
                    && (coding == ContentCoding::Identity || self.codings.contains(&coding))
        };
        let rank = |coding: ContentCoding| if can_be(coding) { accepted.rank(coding) } else { 0 };
        let dearest = ContentCoding::ALL.map(rank).into_iter().max().unwrap_or(0);
        if dearest == 0 {
            // Nothing that it takes can be had: better something than nothing (RFC 9110 §12.5.3).
            return CodingChoice::AsItIs { is_final: true };
        }
        let is_dearest = |coding: ContentCoding| rank(coding) == dearest;
        let is_as_short_as_it_gets =
            |coding: ContentCoding| coding == self.stored || states[coding as usize] == EncodingState::Made;
        let is_there =
            |coding: ContentCoding| is_as_short_as_it_gets(coding) || states[coding as usize] == EncodingState::Quick;
        let in_order = || {
            let unlisted = (!self.codings.contains(&self.stored)).then_some(self.stored);
            let coded =
                self.codings.iter().copied().chain(unlisted).filter(|&coding| coding != ContentCoding::Identity);
            coded.chain([ContentCoding::Identity]).filter(|&coding| is_dearest(coding))
        };
        match in_order().find(|&coding| is_there(coding)) {
            Some(there) => {
                let is_final = in_order().next() == Some(there) && is_as_short_as_it_gets(there);
                match there == self.stored {
                    true => CodingChoice::AsItIs { is_final },
                    false => CodingChoice::Made { coding: there, is_final },
                }
            }
            None => {
                let quickest = QUICKEST_FIRST.into_iter().find(|&coding| is_dearest(coding));
                CodingChoice::Make(quickest.unwrap_or(ContentCoding::Identity))
            }
        }
    }

    /// Can it be told by what differs from a dictionary? As it is compressed: in the codings that are wanted, and not where nothing but
    /// its text is to be had.
    pub(crate) fn has_delta(&self) -> bool {
        DeltaCoding::ALL.into_iter().any(|coding| self.can_be_delta(coding))
    }

    fn can_be_delta(&self, coding: DeltaCoding) -> bool {
        self.codings.contains(&coding.plain())
    }

    /// The coding by a dictionary that its client has, if it is answered by one: what is there goes first here, too. `states`: of what was
    /// made by that dictionary, at the places of their numbers.
    pub(crate) fn choose_delta(
        &self,
        accepted: AcceptedDeltas,
        states: [EncodingState; DeltaCoding::ALL.len()],
    ) -> Option<DeltaCoding> {
        let state = |coding: DeltaCoding| states[coding as usize];
        let mut possible = QUICKEST_DELTA_FIRST.into_iter().filter(|&coding| {
            accepted.takes(coding) && self.can_be_delta(coding) && state(coding) != EncodingState::Pointless
        });
        let there = possible.clone().find(|&coding| state(coding) == EncodingState::Made);
        there.or_else(|| possible.next())
    }

    /// The coding that is worth being made in idle time, for who is answered by something else.
    pub(crate) fn worth_making(&self, accepted: AcceptedCodings) -> Option<ContentCoding> {
        let dearest = self.codings.iter().map(|&coding| accepted.rank(coding)).max()?;
        self.codings.iter().copied().find(|&coding| dearest > 0 && accepted.rank(coding) == dearest)
    }
}

#[cfg(test)]
mod tests {
    use message::Fields;
    use rules::ContentCoding::{Brotli, Gzip, Identity, Zstd};

    use super::*;

    fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        lines.iter().for_each(|(name, value)| fields.push_named(name.as_bytes(), value.as_bytes()));
        fields
    }

    fn accepted(text: &str) -> AcceptedCodings {
        AcceptedCodings::of(fields(&[("Accept-Encoding", text)]).view())
    }

    fn states(made: &[ContentCoding], pointless: &[ContentCoding]) -> [EncodingState; 4] {
        states_with(made, &[], pointless)
    }

    fn states_with(made: &[ContentCoding], quick: &[ContentCoding], pointless: &[ContentCoding]) -> [EncodingState; 4] {
        ContentCoding::ALL.map(|coding| match coding {
            coding if made.contains(&coding) => EncodingState::Made,
            coding if quick.contains(&coding) => EncodingState::Quick,
            coding if pointless.contains(&coding) => EncodingState::Pointless,
            _ => EncodingState::Free,
        })
    }

    const AS_IT_IS: CodingChoice = CodingChoice::AsItIs { is_final: true };
    const BROWSER: &str = "gzip, deflate, br, zstd";

    fn check(stored: ContentCoding, accepts: &str, made: &[ContentCoding], expect: CodingChoice) {
        let codable = Codable { stored, codings: &[Brotli, Zstd, Gzip] };
        assert_eq!(codable.choose(accepted(accepts), states(made, &[])), expect, "{stored:?} {accepts:?} {made:?}");
    }

    #[test]
    fn what_is_to_be_made_is_made_quickly() {
        check(Identity, BROWSER, &[], CodingChoice::Make(Zstd));
        check(Identity, "gzip, deflate, br", &[], CodingChoice::Make(Gzip));
        check(Identity, "br", &[], CodingChoice::Make(Brotli));
        check(Gzip, "identity", &[], CodingChoice::Make(Identity));
        check(Brotli, "gzip", &[], CodingChoice::Make(Gzip));
    }

    #[test]
    fn what_is_there_goes_first_and_the_dearest_of_it_before_the_others() {
        check(Identity, BROWSER, &[Zstd], CodingChoice::Made { coding: Zstd, is_final: false });
        check(Identity, BROWSER, &[Zstd, Brotli], CodingChoice::Made { coding: Brotli, is_final: true });
        check(Identity, "gzip", &[Gzip, Brotli], CodingChoice::Made { coding: Gzip, is_final: true });
        check(Gzip, BROWSER, &[], CodingChoice::AsItIs { is_final: false });
        check(Brotli, BROWSER, &[Gzip], AS_IT_IS);
        check(Gzip, "identity", &[Identity], CodingChoice::Made { coding: Identity, is_final: true });
    }

    #[test]
    fn what_was_made_in_a_hurry_is_not_the_last_word() {
        let codable = Codable { stored: Identity, codings: &[Brotli, Zstd, Gzip] };
        for (accepts, quick, made) in [("gzip", Gzip, false), ("zstd, gzip", Zstd, false), ("gzip", Gzip, true)] {
            let states = if made { states(&[quick], &[]) } else { states_with(&[], &[quick], &[]) };
            let expect = CodingChoice::Made { coding: quick, is_final: made };
            assert_eq!(codable.choose(accepted(accepts), states), expect, "{accepts}");
            assert_eq!(codable.worth_making(accepted(accepts)), Some(quick));
        }
        // What is asked for least is made last: what lies there as it came is as good as any.
        let stored = Codable { stored: Gzip, codings: &[Gzip] };
        assert_eq!(stored.choose(accepted("gzip"), states(&[], &[])), AS_IT_IS);
    }

    #[test]
    fn a_client_s_weights_count_before_what_is_there() {
        check(Identity, "gzip;q=1, br;q=0.5", &[Brotli], CodingChoice::Make(Gzip));
        check(Identity, "identity, gzip;q=0.5", &[Gzip], AS_IT_IS);
        check(Identity, "", &[Gzip], AS_IT_IS);
        check(Gzip, "identity;q=0.5, gzip", &[], AS_IT_IS);
    }

    #[test]
    fn where_nothing_that_it_takes_can_be_had_it_gets_what_is_there() {
        check(Identity, "*;q=0", &[Gzip], AS_IT_IS);
        let codable = Codable { stored: Gzip, codings: &[] };
        assert_eq!(codable.choose(accepted("br, identity;q=0"), states(&[], &[])), AS_IT_IS);
    }

    #[test]
    fn what_was_pointless_is_not_made_again() {
        let codable = Codable { stored: Identity, codings: &[Brotli, Zstd, Gzip] };
        let choose = |made: &[ContentCoding], pointless: &[ContentCoding]| {
            codable.choose(accepted(BROWSER), states(made, pointless))
        };
        assert_eq!(choose(&[], &[Zstd]), CodingChoice::Make(Gzip));
        assert_eq!(choose(&[], &[Zstd, Gzip, Brotli]), AS_IT_IS);
        assert_eq!(choose(&[Zstd], &[Brotli]), CodingChoice::Made { coding: Zstd, is_final: true });
    }

    #[test]
    fn texts_of_some_size_are_worth_it() {
        let settings = CompressSettings::default();
        let codings = |status: u16, lines: &[(&str, &str)], length| {
            let fields = fields(lines);
            Codable::of(&settings, Status(status), fields.view(), length).map(|codable| codable.codings.len())
        };
        let html = ("Content-Type", "text/html; charset=utf-8");
        let gzip = ("Content-Encoding", "gzip");
        assert_eq!(codings(200, &[html], Some(1_024)), Some(3));
        assert_eq!(codings(404, &[html], None), Some(3));
        assert_eq!(codings(200, &[html], Some(1_023)), None);
        assert_eq!(codings(200, &[html], Some(9 << 20)), None);
        assert_eq!(codings(206, &[html], Some(2_000)), None);
        assert_eq!(codings(304, &[html], None), None);
        assert_eq!(codings(200, &[("Content-Type", "image/png")], Some(2_000)), None);
        assert_eq!(codings(200, &[], Some(2_000)), None);
        assert_eq!(codings(200, &[html, ("Cache-Control", "no-transform")], Some(2_000)), None);
        assert_eq!(codings(200, &[html, ("Content-Encoding", "deflate")], Some(2_000)), None);
        // What came in a coding can always be had as it was before.
        assert_eq!(codings(200, &[html, gzip], Some(100)), Some(3));
        assert_eq!(codings(200, &[("Content-Type", "image/png"), gzip], Some(2_000)), Some(0));
        assert_eq!(codings(200, &[html, gzip, ("Cache-Control", "no-transform")], Some(2_000)), Some(0));
    }

    #[test]
    fn by_a_dictionary_goes_what_is_there_and_else_what_is_made_quickly() {
        use DeltaCoding::{Brotli as Dcb, Zstd as Dcz};
        use EncodingState::{Free, Made, Pointless, UnderWay};
        let check = |codings: &[ContentCoding], accepts: &str, states, expect| {
            let accepted = AcceptedDeltas::of(fields(&[("Accept-Encoding", accepts)]).view());
            let codable = Codable { stored: Identity, codings };
            assert_eq!(codable.choose_delta(accepted, states), expect, "{codings:?} {accepts} {states:?}");
        };
        let all = &[Brotli, Zstd, Gzip];
        check(all, "br, zstd, dcb, dcz", [Free, Free], Some(Dcz));
        check(all, "br, zstd, dcb, dcz", [Made, Free], Some(Dcb));
        check(all, "br, zstd, dcb, dcz", [Made, Made], Some(Dcz));
        check(all, "br, zstd, dcb, dcz", [Free, UnderWay], Some(Dcz));
        check(all, "br, zstd, dcb, dcz", [Free, Pointless], Some(Dcb));
        check(all, "br, zstd, dcb, dcz", [Pointless, Pointless], None);
        check(all, "dcb", [Free, Made], Some(Dcb));
        check(all, "dcb;q=0.5, dcz", [Made, Free], Some(Dcz));
        check(all, "gzip, br", [Made, Made], None);
        check(&[Brotli, Gzip], "dcb, dcz", [Free, Free], Some(Dcb));
        check(&[Gzip], "dcb, dcz", [Free, Free], None);
        check(&[], "dcb, dcz", [Made, Made], None);
    }

    #[test]
    fn the_dearest_that_a_client_takes_is_worth_being_made() {
        let codable = Codable { stored: Identity, codings: &[Brotli, Zstd, Gzip] };
        assert_eq!(codable.worth_making(accepted(BROWSER)), Some(Brotli));
        assert_eq!(codable.worth_making(accepted("zstd, gzip")), Some(Zstd));
        assert_eq!(codable.worth_making(accepted("")), None);
    }
}
