//! Operators of a world.

use super::{FLOWS, World};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{FLOW_POOL, KeyPause, MessageBody, PoolKey};
use starbridge_runtime::KeyChange;

impl World {
    pub(super) fn operate(&mut self) {
        let change = if self.chance.of(50) {
            let limits = [None, Some(1), Some(2), Some(3)];
            KeyChange {
                limit: Some(self.chance.pick(&limits)),
                ..KeyChange::default()
            }
        } else {
            let pause = KeyPause {
                by: "o".into(),
                since: Timestamp(self.now),
            };
            KeyChange {
                paused: Some(self.chance.of(40).then_some(pause)),
                ..KeyChange::default()
            }
        };
        let flow: Text = self.chance.pick(&FLOWS).into();
        let key = match self.chance.of(50) {
            true => PoolKey {
                pool: FLOW_POOL.into(),
                key: flow,
            },
            false => self.pool_key(&flow),
        };
        self.admission.change(key, change);
    }

    pub(super) fn reorder(&mut self) {
        let waiting = self.all();
        if let Some(waiter) = self.one(&waiting) {
            let body = MessageBody::Reorder {
                priority: u8::try_from(self.chance.below(3)).unwrap_or(0),
                order: 0,
                no_after: self.chance.of(50),
            };
            let message = self.message(&waiter.execution, body);
            self.turn(&waiter.execution, None, Vec::new(), Some(message));
        }
    }
}
