//! What a shard director chooses by: of a call, of a `shard_param` object, or of the transaction that set it.

use parking_lot::RwLock;

use super::directors_vmod::DirectorsFunction;
use super::shard_director;
use super::{Arguments, NOTHING};
use crate::evaluation::evaluator::Run;
use crate::host::{Host, LogKind};
use crate::plain_values::{BackendRef, Fault, Plain};
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
    /// The first seven arguments of `shard.backend` and of `shard_param.set`. The error says which one cannot be.
    pub fn of_call(given: &Arguments<'_, '_>) -> Result<ShardArguments, String> {
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
        let key_blob = given.is_given(2).then(|| given.bytes(2).to_vec());
        agree(by, key, key_blob.as_deref())?;
        let alt = given.plain(3).map(Plain::int);
        if let Some(alt) = alt.filter(|alt| *alt < 0) {
            return Err(format!("invalid alt argument {alt}: it is not negative"));
        }
        let warmup = given.plain(4).map(Plain::real);
        if let Some(warmup) = warmup.filter(|warmup| *warmup != -1.0 && !(0.0..=1.0).contains(warmup)) {
            return Err(format!("invalid warmup argument {warmup}: it is from 0 up to 1, or -1"));
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

/// A key goes with the way of choosing that needs it, and with no other.
fn agree(by: Option<By>, key: Option<i64>, key_blob: Option<&[u8]>) -> Result<(), String> {
    match (by, key, key_blob) {
        (Some(By::Key), None, _) => Err("missing key argument with by=KEY".to_owned()),
        (Some(By::Key), Some(key), _) if u32::try_from(key).is_err() => {
            Err(format!("invalid key argument {key} with by=KEY: it is from 0 to 4294967295"))
        }
        (Some(By::Blob), _, None) => Err("missing key_blob argument with by=BLOB".to_owned()),
        (Some(By::Key | By::Blob), ..) | (_, None, None) => Ok(()),
        (by, ..) => {
            let by = if by == Some(By::Url) { "URL" } else { "HASH" };
            Err(format!("key and key_blob arguments are invalid with by={by}"))
        }
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
pub fn object_of(blob: &[u8]) -> Option<ObjectId> {
    let number = blob.strip_prefix(MARK)?.try_into().ok()?;
    Some(ObjectId(u32::from_le_bytes(number)))
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
            let name = run.loaded.backend_name(BackendRef::Director(id));
            let fault = |why: &str| Fault::new(format!("vmod_directors: shard {name}: shard_param.set() {why}"));
            if !run.is_housekeeping() && !run.is_backend_side() {
                return Err(fault("may only be used in vcl_init and in backend/pipe context"));
            }
            let said = ShardArguments::of_call(given).map_err(|why| fault(&why))?;
            if said.by == Some(By::Blob) && said.key_blob.as_deref() == Some(b"") {
                let why = fault("by=BLOB but no or empty key_blob - using key 0");
                run.host.log(LogKind::Mistake, why.reason().as_bytes());
            }
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
