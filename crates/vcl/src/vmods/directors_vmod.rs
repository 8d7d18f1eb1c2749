//! The functions of vmod directors.

use super::directors::{Director, How};
use super::shard_director::Shard;
use super::shard_parameters::{self, ShardArguments, ShardParameters};
use super::{Arguments, NOTHING, functions};
use crate::evaluation::evaluator::Run;
use crate::host::{Host, LogKind};
use crate::objects::Object;
use crate::plain_values::{BackendRef, Fault, Plain};
use crate::typed_program::{BackendId, ObjectId};

functions! {
    DirectorsFunction {
        NewRoundRobin "round_robin",
        RoundRobinAdd "round_robin.add_backend",
        RoundRobinRemove "round_robin.remove_backend",
        RoundRobinBackend "round_robin.backend",
        NewFallback "fallback",
        FallbackAdd "fallback.add_backend",
        FallbackRemove "fallback.remove_backend",
        FallbackBackend "fallback.backend",
        NewRandom "random",
        RandomAdd "random.add_backend",
        RandomRemove "random.remove_backend",
        RandomBackend "random.backend",
        NewHash "hash",
        HashAdd "hash.add_backend",
        HashRemove "hash.remove_backend",
        HashBackend "hash.backend",
        NewShard "shard",
        ShardWarmup "shard.set_warmup",
        ShardRampup "shard.set_rampup",
        ShardAssociate "shard.associate",
        ShardAdd "shard.add_backend",
        ShardRemove "shard.remove_backend",
        ShardClear "shard.clear",
        ShardReconfigure "shard.reconfigure",
        ShardKey "shard.key",
        ShardBackend "shard.backend",
        ShardDebug "shard.debug",
        NewShardParam "shard_param",
        ParamClear "shard_param.clear",
        ParamSet "shard_param.set",
        ParamBy "shard_param.get_by",
        ParamKey "shard_param.get_key",
        ParamAlt "shard_param.get_alt",
        ParamWarmup "shard_param.get_warmup",
        ParamRampup "shard_param.get_rampup",
        ParamHealthy "shard_param.get_healthy",
        ParamUse "shard_param.use",
        Lookup "lookup",
    }
}

/// What `new` makes.
pub fn make(function: DirectorsFunction, given: &Arguments<'_, '_>) -> Result<Object, Fault> {
    use DirectorsFunction as F;
    Ok(match function {
        F::NewRoundRobin => Object::Director(Director::new(How::RoundRobin(Default::default()))),
        F::NewFallback => {
            Object::Director(Director::new(How::Fallback { sticky: given.truth(0), last: Default::default() }))
        }
        F::NewRandom => Object::Director(Director::new(How::Random)),
        F::NewHash => Object::Director(Director::new(How::Hash)),
        F::NewShard => Object::Shard(Shard::default()),
        F::NewShardParam => Object::ShardParameters(ShardParameters::default()),
        other => return Err(Fault::new(format!("{other:?} makes no object"))),
    })
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: DirectorsFunction,
    object: Option<ObjectId>,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    if function == DirectorsFunction::Lookup {
        return match run.is_housekeeping() {
            true => Ok(Plain::Backend(lookup(run, given.bytes(0)))),
            false => Err(Fault::new("directors.lookup() finds names in vcl_init and vcl_fini only")),
        };
    }
    let id = object.ok_or_else(|| Fault::new("a method is called without its object"))?;
    match run.loaded.objects().get(id) {
        Some(Object::Director(director)) => of_director(run, function, id, director, given),
        Some(Object::Shard(shard)) => of_shard(run, function, id, shard, given),
        Some(Object::ShardParameters(parameters)) => shard_parameters::call(run, function, id, parameters, given),
        _ => Err(Fault::new(format!(
            "{} is used before `new` has made it in vcl_init",
            run.loaded.backend_name(BackendRef::Director(id))
        ))),
    }
}

fn of_director<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: DirectorsFunction,
    id: ObjectId,
    director: &Director,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use DirectorsFunction as F;
    match function {
        F::RoundRobinAdd | F::FallbackAdd => director.add(member(run, given)?, 1.0)?,
        F::RandomAdd | F::HashAdd => director.add(member(run, given)?, given.real(1))?,
        F::RoundRobinRemove | F::FallbackRemove | F::RandomRemove | F::HashRemove => director.remove(given.backend(0)),
        F::HashBackend => {
            return Ok(Plain::Backend(director.by_key(run.loaded, run.host, given.bytes(0))));
        }
        _ => return Ok(Plain::Backend(BackendRef::Director(id))),
    }
    Ok(NOTHING)
}

/// What is added to a director. As in Varnish, what is called `none` is no member.
fn member<'a, H: Host<'a>>(run: &Run<'a, '_, H>, given: &Arguments<'_, 'a>) -> Result<BackendRef, Fault> {
    let backend = given.backend(0);
    match run.loaded.is_none(backend) {
        true => Err(Fault::new("None backend cannot be added")),
        false => Ok(backend),
    }
}

/// As in Varnish, a shard director passes over a number that is none for it, and says so in the log.
fn ignored<'a, H: Host<'a>>(run: &Run<'a, '_, H>, id: ObjectId, call: std::fmt::Arguments<'_>) {
    tell(run, id, LogKind::Notice, &format!(".{call} ignored"));
}

fn tell<'a, H: Host<'a>>(run: &Run<'a, '_, H>, id: ObjectId, kind: LogKind, what: &str) {
    run.host.log(kind, shard_fault(run, id, what).reason().as_bytes());
}

/// With the director's name before it.
fn shard_fault<'a, H: Host<'a>>(run: &Run<'a, '_, H>, id: ObjectId, what: &str) -> Fault {
    let name = run.loaded.backend_name(BackendRef::Director(id));
    Fault::new(format!("vmod_directors: shard {name}: {what}"))
}

/// Varnish's bits of `shard.debug`: each choice is told, and each new circle.
const TELLS_CHOICES: i64 = 1;
const TELLS_CIRCLES: i64 = 2;

/// The circle, point by point. It is nobody's request: that one has drawn it is chance.
fn tell_circle<'a, H: Host<'a>>(run: &Run<'a, '_, H>, shard: &Shard) {
    for (at, (point, host)) in shard.circle().into_iter().enumerate() {
        let line = format!("vmod_directors: shard: hashcircle[{at:5}] = {{point = {point:8x}, host = {host:2}}}");
        run.host.world().log(LogKind::Debug, line.as_bytes());
    }
}

fn of_shard<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: DirectorsFunction,
    id: ObjectId,
    shard: &Shard,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use DirectorsFunction as F;
    let plain_real = |index: usize| given.plain(index).map(Plain::real);
    match function {
        F::ShardWarmup => {
            let probability = given.real(0);
            if !shard.set_warmup(probability) {
                ignored(run, id, format_args!("set_warmup({probability:.6})"));
            }
        }
        F::ShardRampup => shard.set_rampup(given.real(0))?,
        F::ShardAssociate if !given.is_given(0) => shard.associate(None),
        F::ShardAssociate => match shard_parameters::object_of(given.bytes(0)) {
            Some(parameters) => shard.associate(Some(parameters)),
            None => return Err(shard_fault(run, id, "shard .associate param invalid")),
        },
        F::ShardAdd => {
            let name = match given.text(1) {
                Some(ident) => ident.to_vec(),
                None => run.loaded.backend_name(given.backend(0)).as_bytes().to_vec(),
            };
            let weight = plain_real(3).unwrap_or(1.0);
            let member = member(run, given).map_err(|why| shard_fault(run, id, why.reason()))?;
            if weight < 1.0 {
                ignored(run, id, format_args!("add_backend(weight={weight:.6})"));
            }
            if !shard.add(member, name, plain_real(2), weight.max(1.0))? {
                let ident = given.text(1).map(|ident| format!("/{}", String::from_utf8_lossy(ident)));
                let (of, ident) = (run.loaded.backend_name(member), ident.unwrap_or_default());
                tell(run, id, LogKind::Notice, &format!("backend {of}{ident} already exists - skipping"));
            }
            return Ok(Plain::Bool(true));
        }
        F::ShardRemove if !given.is_given(0) && !given.is_given(1) => {
            return Err(shard_fault(run, id, ".remove_backend(): either backend or ident are required"));
        }
        F::ShardRemove => {
            let backend = given.is_given(0).then(|| given.backend(0));
            return Ok(Plain::Bool(shard.remove(backend, given.text(1))));
        }
        F::ShardClear => {
            shard.clear();
            return Ok(Plain::Bool(true));
        }
        F::ShardReconfigure => {
            let (is_as_wanted, is_drawn_anew) = shard.reconfigure(given.int(0))?;
            if is_drawn_anew && shard.tells() & TELLS_CIRCLES != 0 {
                tell_circle(run, shard);
            }
            if !is_as_wanted {
                let why = match given.int(0) {
                    ..=0 => format!("invalid replicas argument {}", given.int(0)),
                    _ => "no backends".to_owned(),
                };
                tell(run, id, LogKind::Mistake, &format!(".reconfigure() {why}"));
            }
            return Ok(Plain::Bool(is_as_wanted));
        }
        F::ShardKey => return Ok(Plain::Int(i64::from(super::shard_director::hash(&[given.bytes(0)])))),
        F::ShardBackend => {
            return shard_backend(run, id, shard, given).map(Plain::Backend);
        }
        F::ShardDebug => shard.set_tells(given.int(0)),
        _ => {}
    }
    Ok(NOTHING)
}

/// `shard.backend`: who answers, or the director itself, which chooses when the fetch begins, by what was said last.
fn shard_backend<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    id: ObjectId,
    shard: &Shard,
    given: &Arguments<'_, 'a>,
) -> Result<BackendRef, Fault> {
    let is_late = given.word(8).map_or(run.is_housekeeping(), |word| word == "LAZY");
    let says_something = (0..=7).any(|at| given.is_given(at));
    if is_late && says_something && !run.is_backend_side() {
        let what = ".backend(resolve=LAZY) with other parameters can only be used in backend/pipe context";
        return Err(shard_fault(run, id, what));
    }
    let param = given.is_given(7).then(|| shard_parameters::object_of(given.bytes(7)));
    let Some(param) = param.map_or(Some(None), |found| found.map(Some)) else {
        return Err(shard_fault(run, id, ".backend(key_blob) param invalid: it takes what shard_param.use() gives"));
    };
    let said = ShardArguments::of_call(given).map_err(|why| shard_fault(run, id, &format!(".backend() {why}")))?;
    let said = ShardArguments { param, ..said };
    if !is_late {
        return match run.is_housekeeping() {
            true => Err(shard_fault(run, id, ".backend(resolve=NOW) can not be used in vcl_init{}/vcl_fini{}")),
            false => {
                let (chosen, key) = shard.choose_now(run, id, &said)?;
                if shard.tells() & TELLS_CHOICES != 0 {
                    let (at, host) = shard.start_of(key);
                    let line = format!("vmod_directors: shard: lookup key {key:x} idx {at} host {host}");
                    run.host.world().log(LogKind::Debug, line.as_bytes());
                }
                Ok(chosen)
            }
        };
    }
    if says_something {
        run.host.task().set_shard_arguments(id, said);
    }
    Ok(BackendRef::Director(id))
}

/// A backend or director by its name.
fn lookup<'a, H: Host<'a>>(run: &Run<'a, '_, H>, name: &[u8]) -> BackendRef {
    let program = run.loaded.program();
    let backend = program.backends.iter().position(|backend| backend.name.as_bytes() == name);
    if let Some(index) = backend {
        return BackendRef::Named(BackendId(index as u32));
    }
    let object = program.objects.iter().position(|object| object.name.as_bytes() == name);
    let id = object.map(|index| ObjectId(index as u32));
    match id.and_then(|id| Some((id, run.loaded.objects().get(id)?))) {
        Some((id, Object::Director(_) | Object::Shard(_))) => BackendRef::Director(id),
        _ => BackendRef::None,
    }
}
