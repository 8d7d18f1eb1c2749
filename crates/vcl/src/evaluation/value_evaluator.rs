//! Values: what the trees give over a host.
//!
//! Absent texts stay absent until they are joined; see `typed_program`. A number out of its type's range ends the run.

use std::borrow::Cow;
use std::cmp::Ordering;

use smallvec::SmallVec;

use super::compiled::*;
use super::evaluator::Run;
use super::lawful_values::header_value;
use super::text_forms;
use crate::host::{Host, LogKind};
use crate::matching::pattern_sets::MatchedSet;
use crate::matching::substitution::substitute;
use crate::plain_values::{BackendRef, Fault, Ip, Plain};
use crate::syntax::BinaryOperator;
use crate::typed_program::AclId;
use crate::variables::VariableId;
use crate::vmods::HeaderArgument;

/// Passes over what a chain of substitutions makes of one text: where much changes, every step looks for itself.
const CHAIN_PASSES_MAX: u32 = 3;

/// For longer texts it is cheaper that each step looks for the letters it needs.
const CHAIN_BYTES_PER_STEP: usize = 12;

type Given<T> = Result<T, Fault>;

/// What the set of that number found in its text just now.
pub struct Asked<'a> {
    set: u32,
    matched: MatchedSet<'a>,
}

impl<'a, H: Host<'a>> Run<'a, '_, H> {
    pub fn plain(&self, any: &'a Any) -> Given<Plain<'a>> {
        Ok(match any {
            Any::Text(of) => Plain::Text(self.text(of)?),
            Any::Bool(of) => Plain::Bool(self.cond(of)?),
            Any::Int(of) => Plain::Int(self.int(of)?),
            Any::Bytes(of) => Plain::Bytes(self.int(of)?),
            Any::Real(of) => Plain::Real(self.real(of)?),
            Any::Duration(of) => Plain::Duration(self.real(of)?),
            Any::Time(of) => Plain::Time(self.real(of)?),
            Any::Ip(of) => Plain::Ip(self.ip(of)?),
            Any::Blob(of) => Plain::Blob(self.blob(of)?),
            Any::Backend(of) => Plain::Backend(self.backend(of)?),
            Any::Storage(of) => Plain::Storage(self.storage(of)?),
            // Those have no value by themselves; functions take them as they are.
            _ => Plain::Text(None),
        })
    }

    #[inline]
    pub fn text(&self, text: &'a Text) -> Given<Option<&'a [u8]>> {
        match text {
            Text::Constant(text) => Ok(Some(text)),
            Text::Header(of, name) => Ok(self.host.header(*of, name)),
            Text::Variable(id) => Ok(self.host.variable(*id).text()),
            Text::Absent => Ok(None),
            other => self.made_text(other),
        }
    }

    fn made_text(&self, text: &'a Text) -> Given<Option<&'a [u8]>> {
        match text {
            Text::Join(parts) => self.join(parts).map(Some),
            Text::Changed(change) => self.changed(change),
            Text::Of(any) => self.text_of(self.plain(any)?),
            Text::Call(call) => Ok(self.call(call)?.text()),
            Text::HeaderCalled(of, name) => match self.text(name)? {
                Some(name) => Ok(self.host.header(*of, &*HeaderArgument::called(name)?)),
                None => Ok(None),
            },
            simple => self.text(simple),
        }
    }

    pub fn text_of(&self, plain: Plain<'a>) -> Given<Option<&'a [u8]>> {
        text_forms::of_plain(plain, self.arena, |backend| self.backend_text(backend))
    }

    /// Substitutions one after another, each in what the one before left.
    pub fn rewritten(&self, text: &'a [u8], steps: &'a [Rewriting], set: Option<&'a ChainSet>) -> Given<&'a [u8]> {
        let mut text = header_value(text);
        let mut matched: Option<MatchedSet<'a>> = None;
        let (mut is_of_this_text, mut passes_left) = (false, CHAIN_PASSES_MAX);
        for (index, step) in steps.iter().enumerate() {
            self.stand_at(&step.at)?;
            if let Some(set) = set
                && let Some(place) = set.places[index]
                // What matched before something else was replaced mostly still does.
                && (is_of_this_text || !matched.is_some_and(|matched| matched.has(place)))
            {
                let is_worth_it = text.len() <= CHAIN_BYTES_PER_STEP * (steps.len() - index);
                if !is_of_this_text && passes_left > 0 && is_worth_it {
                    matched = set.engine.matched_once(text, self.arena)?;
                    (is_of_this_text, passes_left) = (true, passes_left - 1);
                }
                if is_of_this_text && matched.is_some_and(|matched| !matched.has(place)) {
                    continue;
                }
            }
            let pattern = &self.compiled.patterns[step.pattern.index()];
            let changed = header_value(substitute(pattern, text, &step.replacement, step.all, self.arena)?);
            is_of_this_text &= std::ptr::eq(changed, text);
            text = changed;
        }
        Ok(text)
    }

    fn backend_text(&self, backend: BackendRef) -> Given<&'a [u8]> {
        match self.loaded.backend_name(backend) {
            Cow::Borrowed(name) => Ok(name.as_bytes()),
            Cow::Owned(name) => self.arena.copy(name.as_bytes()),
        }
    }

    pub fn join(&self, parts: &'a [Text]) -> Given<&'a [u8]> {
        let mut texts: SmallVec<[&[u8]; 8]> = SmallVec::new();
        for part in parts {
            texts.extend(self.text(part)?.filter(|text| !text.is_empty()));
        }
        match texts.as_slice() {
            [] => Ok(b""),
            [only] => Ok(only),
            several => self.arena.join(several),
        }
    }

    fn changed(&self, change: &'a ChangedText) -> Given<Option<&'a [u8]>> {
        match change {
            ChangedText::Upper(text) => {
                let text = self.text(text)?;
                text.map(|text| text_forms::upper(text, self.arena)).transpose()
            }
            ChangedText::Lower(text) => {
                let text = self.text(text)?;
                text.map(|text| text_forms::lower(text, self.arena)).transpose()
            }
            ChangedText::Substituted { all, text, pattern, replacement } => {
                let text = self.text(text)?.unwrap_or_default();
                let replacement = self.text(replacement)?.unwrap_or_default();
                let pattern = &self.compiled.patterns[pattern.index()];
                substitute(pattern, text, replacement, *all, self.arena).map(Some)
            }
        }
    }

    #[inline]
    pub fn cond(&self, cond: &'a Cond) -> Given<bool> {
        match cond {
            Cond::HeaderIsThere(of, name) => Ok(self.host.header(*of, name).is_some()),
            Cond::Match(of) => self.matches(of),
            Cond::Not(of) => Ok(!self.cond(of)?),
            Cond::And(parts) => {
                let mut asked = None;
                for part in parts {
                    if !self.next_cond(part, &mut asked)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Cond::Or(parts) => {
                let mut asked = None;
                for part in parts {
                    if self.next_cond(part, &mut asked)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Cond::Among(among) => self.among(among),
            Cond::Texts(operator, sides) => Ok(compare_texts(*operator, self.text(&sides.0)?, self.text(&sides.1)?)),
            other => self.other_cond(other),
        }
    }

    fn other_cond(&self, cond: &'a Cond) -> Given<bool> {
        Ok(match cond {
            Cond::Constant(truth) => *truth,
            Cond::Variable(id) => self.host.variable(*id).truth(),
            Cond::IsThere(text) => self.text(text)?.is_some(),
            Cond::IsNotZero(number) => self.int(number)? != 0,
            Cond::IsPositive(number) => self.real(number)? > 0.0,
            Cond::IsSome(backend) => self.backend(backend)? != BackendRef::None,
            Cond::StorageIsHappy(storage) => {
                let name = self.storage(storage)?.unwrap_or_default();
                self.host.storage(name, VariableId::STORAGE_HAPPY).truth()
            }
            Cond::AclMatch { negated, address, acl } => self.acl_decides(self.ip(address)?, *acl) != *negated,
            Cond::Ints(operator, sides) => holds(*operator, self.int(&sides.0)?.cmp(&self.int(&sides.1)?)),
            Cond::Reals(operator, sides) => {
                let ordering = self.real(&sides.0)?.partial_cmp(&self.real(&sides.1)?);
                ordering.map_or(*operator == BinaryOperator::NotEqual, |ordering| holds(*operator, ordering))
            }
            Cond::Same { negated, sides } => self.same(&sides.0, &sides.1)? != *negated,
            Cond::Call(call) => self.call(call)?.truth(),
            simple => self.cond(simple)?,
        })
    }

    /// One of several conditions that are looked at one after another, with nothing in between: what a set of regexes said
    /// for one is known for the next.
    #[inline]
    pub fn next_cond(&self, cond: &'a Cond, asked: &mut Option<Asked<'a>>) -> Given<bool> {
        match cond {
            Cond::Match(of) => self.matches_next(of, asked),
            // The most frequent of the others, where no call is needed to look at them; they change nothing.
            Cond::HeaderIsThere(of, name) => Ok(self.host.header(*of, name).is_some()),
            Cond::Among(among) => self.among(among),
            other => {
                *asked = None;
                self.cond(other)
            }
        }
    }

    #[inline]
    fn among(&self, among: &'a Among) -> Given<bool> {
        // What is absent is none of them.
        let text = self.text(&among.text)?;
        let is_one = text.is_some_and(|text| among.constants.iter().any(|constant| **constant == *text));
        Ok(is_one != among.negated)
    }

    #[inline]
    fn matches(&self, of: &'a Match) -> Given<bool> {
        self.matches_next(of, &mut None)
    }

    #[inline]
    fn matches_next(&self, of: &'a Match, asked: &mut Option<Asked<'a>>) -> Given<bool> {
        if let Text::Header(message, name) = &of.text
            && of.bytes_min > 0
            && self.host.header(*message, name).is_none()
        {
            return Ok(of.negated);
        }
        self.matches_text(of, asked)
    }

    fn matches_text(&self, of: &'a Match, asked: &mut Option<Asked<'a>>) -> Given<bool> {
        let in_set = of.in_group.and_then(|(group, member)| {
            let set = self.compiled.groups[group as usize].set.as_ref()?;
            Some((set, set.places[member as usize]?))
        });
        if let (Some((set, place)), Some(known)) = (in_set, &asked)
            && set.number == known.set
        {
            return Ok(known.matched.has(place) != of.negated);
        }
        if of.in_group.is_none() {
            // What is called for this text may change that one.
            *asked = None;
        }
        let text = self.text(&of.text)?.unwrap_or_default();
        if let Some((set, place)) = in_set
            && let Some(matched) = set.engine.matched(text, self.last_pass(set.number)?, self.arena)?
        {
            *asked = Some(Asked { set: set.number, matched });
            return Ok(matched.has(place) != of.negated);
        }
        Ok(self.compiled.patterns[of.pattern.index()].is_match(text)? != of.negated)
    }

    fn acl_decides(&self, ip: Ip, acl: AclId) -> bool {
        let acl = &self.compiled.acls[acl.index()];
        let (matches, entry) = acl.decide(ip.address);
        if acl.log {
            let line = match entry {
                Some(entry) => format!("{} {} {entry}", word(matches), acl.name),
                None => format!("NO_MATCH {}", acl.name),
            };
            self.host.log(LogKind::Acl, line.as_bytes());
        }
        matches
    }

    fn same(&self, left: &'a Any, right: &'a Any) -> Given<bool> {
        Ok(match (left, right) {
            (Any::Acl(left), Any::Acl(right)) => left == right,
            (Any::Probe(left), Any::Probe(right)) => left == right,
            (Any::Object(left), Any::Object(right)) => left == right,
            // Addresses are the same whatever their ports.
            (Any::Ip(left), Any::Ip(right)) => {
                self.ip(left)?.address.to_canonical() == self.ip(right)?.address.to_canonical()
            }
            _ => self.plain(left)? == self.plain(right)?,
        })
    }

    pub fn int(&self, int: &'a Int) -> Given<i64> {
        match int {
            Int::Constant(number) => Ok(*number),
            Int::Variable(id) => Ok(self.host.variable(*id).int()),
            Int::Negative(of) => self.int(of)?.checked_neg().ok_or_else(|| overflow("INT")),
            Int::Arithmetic(operator, sides) => calculate(*operator, self.int(&sides.0)?, self.int(&sides.1)?),
            Int::Scaled(operator, sides) => {
                let (size, factor) = (self.int(&sides.0)? as f64, self.real(&sides.1)?);
                let made = calculate_real(*operator, size, factor)?;
                if made.abs() < i64::MAX as f64 { Ok(made as i64) } else { Err(overflow("BYTES")) }
            }
            Int::StorageSpace(storage, property) => {
                let name = self.storage(storage)?.unwrap_or_default();
                Ok(self.host.storage(name, *property).int())
            }
            Int::Call(call) => Ok(self.call(call)?.int()),
        }
    }

    pub fn real(&self, real: &'a Real) -> Given<f64> {
        match real {
            Real::Constant(number) => Ok(*number),
            Real::Variable(id) => Ok(self.host.variable(*id).real()),
            Real::OfInt(of) => Ok(self.int(of)? as f64),
            Real::Negative(of) => Ok(-self.real(of)?),
            Real::Arithmetic(operator, sides) => calculate_real(*operator, self.real(&sides.0)?, self.real(&sides.1)?),
            Real::Call(call) => Ok(self.call(call)?.real()),
        }
    }

    fn ip(&self, ip: &'a IpOf) -> Given<Ip> {
        Ok(match ip {
            IpOf::Constant(ip) => *ip,
            IpOf::Variable(id) => self.host.variable(*id).ip(),
            IpOf::Call(call) => self.call(call)?.ip(),
        })
    }

    fn blob(&self, blob: &'a BlobOf) -> Given<Option<&'a [u8]>> {
        Ok(match blob {
            BlobOf::Constant(bytes) => Some(bytes),
            BlobOf::Variable(id) => self.host.variable(*id).text(),
            BlobOf::Call(call) => self.call(call)?.text(),
        })
    }

    fn backend(&self, backend: &'a BackendOf) -> Given<BackendRef> {
        Ok(match backend {
            BackendOf::Constant(backend) => *backend,
            BackendOf::Variable(id) => self.host.variable(*id).backend(),
            BackendOf::Resolved(of) => {
                let of = self.backend(of)?;
                self.loaded.resolve(self.host, of).map_or(BackendRef::None, BackendRef::Named)
            }
            BackendOf::Call(call) => self.call(call)?.backend(),
        })
    }

    fn storage(&self, storage: &'a StorageOf) -> Given<Option<&'a [u8]>> {
        Ok(match storage {
            StorageOf::Constant(name) => Some(name),
            StorageOf::Variable(id) => self.host.variable(*id).text(),
            StorageOf::Call(call) => self.call(call)?.text(),
        })
    }
}

fn word(matches: bool) -> &'static str {
    if matches { "MATCH" } else { "NEG_MATCH" }
}

/// As Varnish: with an absent side the left is the greater, whichever is absent.
fn compare_texts(operator: BinaryOperator, left: Option<&[u8]>, right: Option<&[u8]>) -> bool {
    let ordering = match (left, right) {
        (Some(left), Some(right)) => left.cmp(right),
        _ => Ordering::Greater,
    };
    holds(operator, ordering)
}

fn holds(operator: BinaryOperator, ordering: Ordering) -> bool {
    match operator {
        BinaryOperator::Equal => ordering.is_eq(),
        BinaryOperator::NotEqual => ordering.is_ne(),
        BinaryOperator::Less => ordering.is_lt(),
        BinaryOperator::LessEqual => ordering.is_le(),
        BinaryOperator::Greater => ordering.is_gt(),
        BinaryOperator::GreaterEqual => ordering.is_ge(),
        _ => false,
    }
}

fn calculate(operator: BinaryOperator, left: i64, right: i64) -> Given<i64> {
    let made = match operator {
        BinaryOperator::Add => left.checked_add(right),
        BinaryOperator::Subtract => left.checked_sub(right),
        BinaryOperator::Multiply => left.checked_mul(right),
        BinaryOperator::Divide | BinaryOperator::Modulo if right == 0 => return Err(Fault::new("a division by zero")),
        BinaryOperator::Divide => left.checked_div(right),
        BinaryOperator::Modulo => left.checked_rem(right),
        _ => None,
    };
    made.ok_or_else(|| overflow("INT or BYTES"))
}

fn calculate_real(operator: BinaryOperator, left: f64, right: f64) -> Given<f64> {
    let made = match operator {
        BinaryOperator::Add => left + right,
        BinaryOperator::Subtract => left - right,
        BinaryOperator::Multiply => left * right,
        BinaryOperator::Divide if right == 0.0 => return Err(Fault::new("a division by zero")),
        BinaryOperator::Divide => left / right,
        _ => f64::NAN,
    };
    if made.is_finite() { Ok(made) } else { Err(overflow("REAL, DURATION or TIME")) }
}

#[cold]
fn overflow(of: &str) -> Fault {
    Fault::new(format!("a result is too large for {of}"))
}
