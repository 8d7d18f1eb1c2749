//! The conversation with a real authority: the account, an order, its challenges, the certificate (RFC 8555 §7).

use std::sync::Arc;

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error, Identifier, Key,
    NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use tls::Authorities;

use crate::acme_directory::Directory;
use crate::certificate_authority::{Authority, Issued, RenewalInfo, Replaced};
use crate::challenge::{Challenge, ChallengeKind, ChallengeSink};
use crate::https_client::{HttpsClient, PutOff};
use crate::limits::{CHALLENGE_LIFE_S, CHALLENGE_SPREAD, LOCK_LOOK_EVERY, ORDER_TIMEOUT, POLL_TIMEOUT};
use crate::names::NameSet;
use crate::order_failure::Failure;
use crate::schedule::Window;
use crate::state_folder::{self, StateFolder};

/// What was said of an authority. Whoever makes one has asked the operator whether the terms of service are agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthoritySettings {
    pub directory: Directory,
    /// Where it may write to.
    pub email: Option<String>,
    /// Who has signed its own certificate.
    pub authorities: Arc<Authorities>,
    /// The kind of certificates that is asked for, by the authority's name for it.
    pub profile: Option<String>,
    /// Those that may be used; the first is tried first, after a failure the next.
    pub challenges: Vec<ChallengeKind>,
}

/// A real one.
pub struct AcmeAuthority {
    settings: AuthoritySettings,
    folder: StateFolder,
    sink: Arc<dyn ChallengeSink + Send + Sync>,
}

/// account.json
#[derive(Serialize, Deserialize)]
struct StoredAccount {
    /// What the authority knows.
    email: Option<String>,
    credentials: AccountCredentials,
}

impl Authority for AcmeAuthority {
    async fn renewal_info(&self, chain: &str) -> Result<Option<RenewalInfo>, Failure> {
        let Some(certificate) = identifier(chain) else { return Ok(None) };
        let (account, _) = self.account(0).await?;
        match account.renewal_info(&certificate).await {
            Ok((info, again)) => {
                let seconds = |time: i64| u64::try_from(time).unwrap_or_default();
                let window = Window {
                    start_s: seconds(info.suggested_window.start.unix_timestamp()),
                    end_s: seconds(info.suggested_window.end.unix_timestamp()),
                };
                Ok(Some(RenewalInfo { window, explanation: info.explanation_url, again_s: again.as_secs() }))
            }
            Err(Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(Failure::of(&error)),
        }
    }

    async fn issue(
        &self,
        names: &NameSet,
        replaced: Option<Replaced<'_>>,
        failures: u32,
        now_s: u64,
    ) -> Result<Issued, Failure> {
        let whole = async {
            let (account, put_off) = self.account(now_s).await?;
            let ordered = match self.order(&account, names, replaced, failures, now_s).await {
                // It has forgotten who we are, or was never the one that we knew: our key is still ours.
                Err(failure) if failure.is("accountDoesNotExist") => {
                    let (account, _) = self.register_again().await?;
                    self.order(&account, names, replaced, failures, now_s).await
                }
                ordered => ordered,
            };
            ordered.map_err(|failure| failure.not_before(put_off.until_s(now_s)))
        };
        let late = |_| Failure::new(format!("the order was not done within {} s", ORDER_TIMEOUT.as_secs()));
        tokio::time::timeout(ORDER_TIMEOUT, whole).await.map_err(late)?
    }
}

/// Who we are.
impl AcmeAuthority {
    pub fn new(
        settings: AuthoritySettings,
        folder: StateFolder,
        sink: Arc<dyn ChallengeSink + Send + Sync>,
    ) -> AcmeAuthority {
        AcmeAuthority { settings, folder, sink }
    }

    fn client(&self) -> Result<(HttpsClient, PutOff), Failure> {
        HttpsClient::new(&self.settings.authorities).map_err(|error| Failure::of(&error))
    }

    /// The account that is stored, or a new one.
    async fn account(&self, now_s: u64) -> Result<(Account, PutOff), Failure> {
        self.folder.make().map_err(Failure::new)?;
        let lock_path = self.folder.path().join("account.lock");
        // Two that begin at once must not begin two accounts. The order's time bounds the wait.
        let _lock = loop {
            match state_folder::lock(&lock_path, now_s).map_err(Failure::new)? {
                Ok(lock) => break lock,
                Err(_) => tokio::time::sleep(LOCK_LOOK_EVERY / 10).await,
            }
        };
        let (client, put_off) = self.client()?;
        let builder = Account::builder_with_http(Box::new(client));
        let url = self.settings.directory.url();
        let failed = |error: &Error| Failure::of(error).during(url).not_before(put_off.until_s(now_s));
        let Some(stored) = self.stored_account()? else {
            let contact = self.contact();
            let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
            let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
            let (account, credentials) =
                builder.create(&new, url.to_owned(), None).await.map_err(|error| failed(&error))?;
            self.store_account(credentials)?;
            return Ok((account, put_off));
        };
        let account = builder.from_credentials(stored.credentials).await.map_err(|error| failed(&error))?;
        if stored.email != self.settings.email {
            let contact = self.contact();
            let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
            account.update_contacts(&contact).await.map_err(|error| failed(&error))?;
            // Read once more: credentials cannot be copied.
            self.stored_account()?.map_or(Ok(()), |stored| self.store_account(stored.credentials))?;
        }
        Ok((account, put_off))
    }

    /// The key that is stored, made known once more.
    async fn register_again(&self) -> Result<(Account, PutOff), Failure> {
        let (client, put_off) = self.client()?;
        let stored = self.stored_account()?.ok_or_else(|| Failure::new("the account is gone"))?;
        let pkcs8 = stored.credentials.private_key().clone_key();
        let key = Key::from_pkcs8_der(pkcs8.clone_key()).map_err(|error| Failure::of(&error))?;
        let url = self.settings.directory.url().to_owned();
        let builder = Account::builder_with_http(Box::new(client));
        let made = builder.create_from_key((key, PrivateKeyDer::Pkcs8(pkcs8)), url).await;
        let (account, credentials) = made.map_err(|error| Failure::of(&error))?;
        self.store_account(credentials)?;
        Ok((account, put_off))
    }

    fn contact(&self) -> Option<String> {
        self.settings.email.as_ref().map(|email| format!("mailto:{email}"))
    }

    fn stored_account(&self) -> Result<Option<StoredAccount>, Failure> {
        let path = self.folder.account_path();
        let Some(text) = state_folder::read(&path).map_err(Failure::new)? else { return Ok(None) };
        let broken = |error| {
            Failure::new(format!(
                "{} is no account ({error}): bring it back from a copy, or move it away to begin a new account",
                path.display()
            ))
        };
        serde_json::from_slice(&text).map(Some).map_err(broken)
    }

    fn store_account(&self, credentials: AccountCredentials) -> Result<(), Failure> {
        let stored = StoredAccount { email: self.settings.email.clone(), credentials };
        let text = serde_json::to_vec_pretty(&stored).map_err(|error| Failure::new(error.to_string()))?;
        state_folder::write(&self.folder.account_path(), &text).map_err(Failure::new)
    }
}

/// An order.
impl AcmeAuthority {
    async fn order(
        &self,
        account: &Account,
        names: &NameSet,
        replaced: Option<Replaced<'_>>,
        failures: u32,
        now_s: u64,
    ) -> Result<Issued, Failure> {
        let identifiers: Vec<Identifier> = names.names().iter().cloned().map(Identifier::Dns).collect();
        let mut wanted = NewOrder::new(&identifiers);
        if let Some(profile) = &self.settings.profile {
            self.check_profile(account, profile)?;
            wanted = wanted.profile(profile);
        }
        if let Some(replaced) = replaced.and_then(identifier) {
            wanted = wanted.replaces(replaced);
        }
        let during = |what: &'static str| move |error: Error| Failure::of(&error).during(what);
        let mut order = account.new_order(&wanted).await.map_err(during("the order was refused"))?;
        // What is offered is withdrawn at the end, however that comes.
        let mut offered = OfferedChallenges { sink: &*self.sink, folder: &self.folder, all: Vec::new() };
        self.offer_challenges(&mut order, &mut offered, failures, now_s).await?;
        if !offered.all.is_empty() {
            tokio::time::sleep(CHALLENGE_SPREAD).await;
            be_looked_at(&mut order, &offered.all).await?;
        }
        let patience = RetryPolicy::new().timeout(POLL_TIMEOUT);
        match order.poll_ready(&patience).await {
            Ok(OrderStatus::Ready) => {}
            Ok(_) => {
                let why = why_invalid(&mut order, &offered.all).await;
                return Err(why.unwrap_or_else(|| Failure::new("the order has become invalid")));
            }
            Err(error) => {
                let why = why_invalid(&mut order, &offered.all).await;
                return Err(why.unwrap_or_else(|| Failure::of(&error)));
            }
        }
        drop(offered);
        let key = order.finalize().await.map_err(during("the certificate was not signed"))?;
        let chain = order.poll_certificate(&patience).await.map_err(during("the certificate did not come"))?;
        Ok(Issued { chain, key })
    }

    fn check_profile(&self, account: &Account, profile: &str) -> Result<(), Failure> {
        let known: Vec<&str> = account.profiles().map(|known| known.name).collect();
        if known.contains(&profile) {
            return Ok(());
        }
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Failure::new(format!("the authority has no profile `{profile}`; it has {known}")))
    }

    /// Of those that may be used, in the order for this try, the first that the authority has.
    fn choose(&self, failures: u32, has: impl Fn(ChallengeKind) -> bool) -> Option<ChallengeKind> {
        let mut kinds = self.settings.challenges.clone();
        let turned = failures as usize % kinds.len().max(1);
        kinds.rotate_left(turned);
        kinds.into_iter().find(|kind| has(*kind))
    }

    async fn offer_challenges(
        &self,
        order: &mut Order,
        offered: &mut OfferedChallenges<'_>,
        failures: u32,
        now_s: u64,
    ) -> Result<(), Failure> {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(|error| Failure::of(&error))?;
            let name = authorization.identifier().to_string();
            match authorization.status {
                // It has looked not long ago, and remembers.
                AuthorizationStatus::Valid => continue,
                AuthorizationStatus::Pending => {}
                other => return Err(Failure::new(format!("the authorization for {name} is {other:?}"))),
            }
            let has = |kind| authorization.challenges.iter().any(|challenge| challenge.r#type == type_of(kind));
            let kind = self.choose(failures, has).ok_or_else(|| {
                Failure::new(format!("for {name} the authority has none of the challenges that may be used here"))
            })?;
            let Some(challenge) = authorization.challenge(type_of(kind)) else { continue };
            let answer = challenge.key_authorization().as_str().to_owned();
            let token = challenge.token.clone();
            offered.put(Challenge { kind, name, token, answer, until_s: now_s + CHALLENGE_LIFE_S })?;
        }
        Ok(())
    }
}

/// Tells the authority that it may look.
async fn be_looked_at(order: &mut Order, offered: &[Challenge]) -> Result<(), Failure> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(|error| Failure::of(&error))?;
        let name = authorization.identifier().to_string();
        let Some(chosen) = offered.iter().find(|challenge| challenge.name == name) else { continue };
        let Some(mut challenge) = authorization.challenge(type_of(chosen.kind)) else { continue };
        challenge.set_ready().await.map_err(|error| Failure::of(&error).during(&name))?;
    }
    Ok(())
}

/// What the authority met when it looked.
async fn why_invalid(order: &mut Order, offered: &[Challenge]) -> Option<Failure> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.ok()?;
        let name = authorization.identifier().to_string();
        let state = authorization.refresh().await.ok()?;
        if let Some(problem) = state.challenges.iter().find_map(|challenge| challenge.error.clone()) {
            let kind = offered.iter().find(|challenge| challenge.name == name).map(|challenge| challenge.kind);
            let how = kind.map_or(String::new(), |kind| format!(", asked by {kind}"));
            let what = format!("the authority did not find us at {name}{how}");
            return Some(Failure::of(&Error::Api(problem)).during(&what));
        }
    }
    None
}

fn type_of(kind: ChallengeKind) -> ChallengeType {
    match kind {
        ChallengeKind::Http => ChallengeType::Http01,
        ChallengeKind::Alpn => ChallengeType::TlsAlpn01,
    }
}

/// By which an authority knows a certificate.
fn identifier(chain: &str) -> Option<CertificateIdentifier<'static>> {
    let certificate = CertificateDer::from_pem_slice(chain.as_bytes()).ok()?;
    CertificateIdentifier::try_from(&certificate).ok().map(CertificateIdentifier::into_owned)
}

/// Those of one order: answered here, and by the nodes that share the folder, as long as this lives.
struct OfferedChallenges<'a> {
    sink: &'a (dyn ChallengeSink + Send + Sync),
    folder: &'a StateFolder,
    all: Vec<Challenge>,
}

impl OfferedChallenges<'_> {
    fn put(&mut self, challenge: Challenge) -> Result<(), Failure> {
        self.sink.offer(&challenge).map_err(Failure::new)?;
        let put = self.folder.challenges().put(&challenge);
        self.all.push(challenge);
        put.map_err(Failure::new)
    }
}

impl Drop for OfferedChallenges<'_> {
    fn drop(&mut self) {
        for challenge in &self.all {
            self.sink.withdraw(challenge);
            self.folder.challenges().remove(challenge);
        }
    }
}
