//! What a shard director chooses by: of a call, of a `shard_param` object, or of the transaction that set it.

use parking_lot::RwLock;

use super::directors_vmod::DirectorsFunction;
use super::shard_director;
use super::{Arguments, NOTHING};
use crate::evaluation::evaluator::Run;
use crate::host::Host;
use crate::plain_values::{Fault, Plain};
use crate::typed_program::ObjectId;
use crate::variables::VariableId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Hash,
    Url,
    Key,
    Blob,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Healthy {
    Chosen,
    Ignore,
    All,
}

/// What is said; what is not said is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardArguments {
    pub by: Option<By>,
    pub key: Option<i64>,
    pub key_blob: Option<Vec<u8>>,
    pub alt: Option<i64>,
    pub warmup: Option<f64>,
    pub rampup: Option<bool>,
    pub healthy: Option<Healthy>,
    /// Of `shard.backend` alone: the `shard_param` that says what is not said here.
    pub param: Option<ObjectId>,
}

/// A `shard_param` object.
#[derive(Debug, Default)]
pub struct ShardParameters {
    said: RwLock<ShardArguments>,
}

impl ShardArguments {
    /// The first seven arguments of `shard.backend` and of `shard_param.set`.
    pub fn of_call(given: &Arguments<'_, '_>) -> Result<ShardArguments, Fault> {
        let by = given.word(0).map(|word| match word {
            "URL" => By::Url,
            "KEY" => By::Key,
            "BLOB" => By::Blob,
            _ => By::Hash,
        });
        let healthy = given.word(6).map(|word| match word {
            "IGNORE" => Healthy::Ignore,
            "ALL" => Healthy::All,
            _ => Healthy::Chosen,
        });
        let key = given.plain(1).map(Plain::int);
        if key.is_some_and(|key| u32::try_from(key).is_err()) {
            return Err(Fault::new("shard: a key is from 0 to 4294967295"));
        }
        let warmup = given.plain(4).map(Plain::real);
        if warmup.is_some_and(|warmup| warmup != -1.0 && !(0.0..=1.0).contains(&warmup)) {
            return Err(Fault::new("shard: a warmup is from 0 up to 1, or -1"));
        }
        if by == Some(By::Key) && key.is_none() {
            return Err(Fault::new("shard: by=KEY needs `key`"));
        }
        let key_blob = given.text(2).map(<[u8]>::to_vec);
        if by == Some(By::Blob) && key_blob.is_none() {
            return Err(Fault::new("shard: by=BLOB needs `key_blob`"));
        }
        let alt = given.plain(3).map(Plain::int);
        if alt.is_some_and(|alt| alt < 0) {
            return Err(Fault::new("shard: `alt` is not negative"));
        }
        let rampup = given.plain(5).map(Plain::truth);
        Ok(ShardArguments { by, key, key_blob, alt, warmup, rampup, healthy, param: None })
    }

    /// This, and what it does not say as the other says it.
    pub fn or(&self, other: &ShardArguments) -> ShardArguments {
        ShardArguments {
            by: self.by.or(other.by),
            key: self.key.or(other.key),
            key_blob: self.key_blob.clone().or_else(|| other.key_blob.clone()),
            alt: self.alt.or(other.alt),
            warmup: self.warmup.or(other.warmup),
            rampup: self.rampup.or(other.rampup),
            healthy: self.healthy.or(other.healthy),
            param: self.param.or(other.param),
        }
    }

    /// The place on the circle. Before there is a bereq there is no hash: the URL of the client's stands for it, as in Varnish.
    pub fn key_to_choose<'a, H: Host<'a>>(&self, host: &H) -> Option<u32> {
        let hash = host.variable(VariableId::BEREQ_HASH).text();
        let url = if hash.is_some() { VariableId::BEREQ_URL } else { VariableId::REQ_URL };
        match (self.by(), hash) {
            (By::Hash, Some(hash)) => Some(first_four(hash)),
            (By::Hash | By::Url, _) => Some(shard_director::hash(&[host.variable(url).text().unwrap_or_default()])),
            (By::Key, _) => self.key.map(|key| key as u32),
            (By::Blob, _) => self.key_blob.as_deref().map(first_four),
        }
    }

    pub fn by(&self) -> By {
        self.by.unwrap_or(By::Hash)
    }

    pub fn healthy(&self) -> Healthy {
        self.healthy.unwrap_or(Healthy::Chosen)
    }
}

/// The first four bytes, greatest first; fewer are as if zeros stood before them.
fn first_four(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |key, byte| key << 8 | u32::from(*byte))
}

impl ShardParameters {
    pub fn get(&self) -> ShardArguments {
        self.said.read().clone()
    }
}

/// What `shard_param.use()` gives: a blob that means the object and nothing else.
const MARK: &[u8] = b"larder shard_param ";

/// The object that such a blob means.
pub fn object_of(blob: &[u8]) -> Result<ObjectId, Fault> {
    let number = blob.strip_prefix(MARK).and_then(|number| number.try_into().ok());
    let number = number.ok_or_else(|| Fault::new("shard: `param` takes what shard_param.use() gives"))?;
    Ok(ObjectId(u32::from_le_bytes(number)))
}

/// The methods of `shard_param`. Where a request is under way, what is set counts for that alone.
pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: DirectorsFunction,
    id: ObjectId,
    parameters: &ShardParameters,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use DirectorsFunction as F;
    let said = || run.host.task().shard_arguments(id).or(&parameters.get());
    let word = |word: &'static str| Plain::Text(Some(word.as_bytes()));
    Ok(match function {
        F::ParamClear if run.is_housekeeping() => {
            *parameters.said.write() = ShardArguments::default();
            NOTHING
        }
        F::ParamClear => {
            run.host.task().set_shard_arguments(id, ShardArguments::default());
            NOTHING
        }
        F::ParamSet => {
            let said = ShardArguments::of_call(given)?;
            if run.is_housekeeping() {
                *parameters.said.write() = said;
            } else {
                run.host.task().set_shard_arguments(id, said);
            }
            NOTHING
        }
        F::ParamBy => word(match said().by() {
            By::Hash => "HASH",
            By::Url => "URL",
            By::Key => "KEY",
            By::Blob => "BLOB",
        }),
        F::ParamKey => Plain::Int(said().key_to_choose(run.host).map_or(0, i64::from)),
        F::ParamAlt => Plain::Int(said().alt.unwrap_or(0)),
        F::ParamWarmup => Plain::Real(said().warmup.unwrap_or(-1.0)),
        F::ParamRampup => Plain::Bool(said().rampup.unwrap_or(true)),
        F::ParamHealthy => word(match said().healthy() {
            Healthy::Chosen => "CHOSEN",
            Healthy::Ignore => "IGNORE",
            Healthy::All => "ALL",
        }),
        F::ParamUse => Plain::Blob(Some(run.arena.join(&[MARK, &id.0.to_le_bytes()])?)),
        other => return Err(Fault::new(format!("{other:?} is no method of shard_param"))),
    })
}
