//! Numbers of a step that may be written as paths into the step's own input.

use super::Checker;
use super::cursor::Cursor;
use crate::expression::{RetryNumber, Setting, SettingPaths};
use crate::graph::SettingsReader;
use crate::path::Query;
use crate::syntax::NodeKind;
use std::sync::Arc;

impl Checker<'_> {
    /// A member with a fixed value; `None` if it is written as a path.
    pub(super) fn fixed<'b>(&self, owner: &'b Cursor<'_>, field: &str) -> Option<Cursor<'b>> {
        owner.member(field).filter(|member| !is_computed(member))
    }

    /// The numbers of a step, and of its retry policies, that are written as paths. Fields that a step of this kind does not
    /// have are reported elsewhere.
    pub(super) fn settings(&self, step: &Cursor<'_>) -> Option<Arc<dyn SettingsReader>> {
        let mut paths = Vec::new();
        for setting in Setting::OF_STEP {
            paths.extend(self.setting(step, setting));
        }
        if let Some(retry) = step.member("retry") {
            for (policy, cursor) in (0..).zip(retry.entries()) {
                for number in RetryNumber::ALL {
                    paths.extend(self.setting(&cursor, Setting::Retry(policy, number)));
                }
            }
        }
        (!paths.is_empty()).then(|| Arc::new(SettingPaths(paths)) as Arc<dyn SettingsReader>)
    }

    fn setting(&self, owner: &Cursor<'_>, setting: Setting) -> Option<(Setting, Query)> {
        let member = owner.member(setting.field()).filter(is_computed)?;
        let text = self.text(&member)?;
        Some((setting, self.query(&member, &text)?))
    }
}

/// Whether a member is written as a path.
fn is_computed(member: &Cursor<'_>) -> bool {
    matches!(&member.node.kind, NodeKind::String(text) if text.starts_with('$'))
}
