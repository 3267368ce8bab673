//! Lookups: lists read the index of executions, turns are read from their items.

use crate::DynamoStore;
use crate::client::{BEGINS, QueryRequest};
use crate::item::{Item, number, text, text_of};
use crate::record::{self, id_of};
use crate::table::{self, EXECUTIONS, HEAD, PLACE};
use starbridge_flow::time::Millis;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{
    AttemptLog, ExecutionRecord, Listed, Listing, Page, Query, STATUS_CODES, StoreError, Turn, TurnHead, TurnPage,
    code_of,
};
use std::collections::{BTreeMap, VecDeque};

/// How many items one page of the index has at least and at most.
const MIN_PAGE: usize = 25;
const MAX_PAGE: usize = 500;
/// How many executions one page looks at. With few matches, the result is spread over several
/// pages, so that no request reads all executions.
const LOOKED: usize = 5_000;
/// The maximum time by which a start may have been written after the execution began, or before it
/// by another clock.
const SKEW: Millis = Millis::from_secs(60 * 60);

/// The executions of one flow in one status, the newest first.
struct Stream {
    ask: QueryRequest,
    ready: VecDeque<Item>,
    from: Option<Item>,
    over: bool,
}

/// The order of an execution: `<order of starts>#<id>`, without the digit of the status before it.
fn order(item: &Item) -> &str {
    let place = text_of(item, PLACE).unwrap_or_default();
    place.split_once('#').map_or("", |(_, order)| order)
}

/// Whether a text has the form that [`order`] gives. A cursor is the order of the last execution shown.
fn is_order(text: &str) -> bool {
    text.split_once('#').is_some_and(|(order, id)| {
        order.len() == crate::order_text(0).len() && order.bytes().all(|digit| digit.is_ascii_digit()) && !id.is_empty()
    })
}

impl DynamoStore {
    fn streams(&self, query: &Query) -> Result<Vec<Stream>, StoreError> {
        let flows = match &query.flow {
            Some(flow) if flow.is_empty() => Vec::new(),
            Some(flow) => vec![flow.clone()],
            None => self.flows_known()?,
        };
        let mut codes: Vec<usize> = query.statuses.iter().map(|status| code_of(*status)).collect();
        if codes.is_empty() {
            codes = (0..STATUS_CODES.len()).collect();
        }
        codes.sort_unstable();
        codes.dedup();
        let first = query
            .from
            .map_or_else(String::new, |from| crate::order_at(from.minus(SKEW)));
        let last = query.cursor.as_ref().map_or("~", Text::as_str);
        let limit = query.limit.saturating_mul(2).clamp(MIN_PAGE, MAX_PAGE);
        let stream = |flow: &Text, code: usize| Stream {
            ask: QueryRequest {
                index: Some(EXECUTIONS),
                keys: Some("#flow = :flow AND #place BETWEEN :first AND :last".to_owned()),
                values: vec![
                    (":flow", text(&**flow)),
                    (":first", text(format!("{code}#{first}"))),
                    (":last", text(format!("{code}#{last}"))),
                ],
                backwards: true,
                limit: i32::try_from(limit).ok(),
                ..QueryRequest::default()
            },
            ready: VecDeque::new(),
            from: None,
            over: false,
        };
        let of_flow = |flow: &Text| codes.iter().map(|code| stream(flow, *code)).collect::<Vec<_>>();
        // If the cursor lies before the beginning, nothing lies between them.
        let sound = query.from.is_none() || last >= first.as_str();
        Ok(flows.iter().filter(|_| sound).flat_map(of_flow).collect())
    }

    /// Takes the newest item of all streams.
    fn newest(&self, streams: &mut [Stream]) -> Result<Option<Item>, StoreError> {
        for stream in streams.iter_mut() {
            while stream.ready.is_empty() && !stream.over {
                let (items, next) = self.client.page(&stream.ask, stream.from.take())?;
                stream.ready.extend(items);
                stream.over = next.is_none();
                stream.from = next;
            }
        }
        let streams = streams.iter_mut().filter(|stream| !stream.ready.is_empty());
        let newest = streams.max_by(|one, other| {
            let order = |stream: &Stream| stream.ready.front().map(|item| order(item).to_owned());
            order(one).cmp(&order(other))
        });
        Ok(newest.and_then(|stream| stream.ready.pop_front()))
    }

    /// Calls `wanted` with the turns of an execution, in order or backwards, from the one that holds event `from` on,
    /// until it returns false.
    fn walk(
        &self,
        execution: &str,
        from: EventId,
        backwards: bool,
        mut wanted: impl FnMut(Turn) -> bool,
    ) -> Result<(), StoreError> {
        let Some((head, item)) = self.head_item(execution)? else {
            return Ok(());
        };
        let mut give = |item: &Item| -> Result<bool, StoreError> {
            let mut turns = self.turns_in(item)?;
            if backwards {
                turns.reverse();
            }
            let ahead = |turn: &Turn| {
                if backwards {
                    turn.first <= from
                } else {
                    turn.last() >= from
                }
            };
            Ok(turns.into_iter().filter(ahead).all(&mut wanted))
        };
        if !backwards && head.last >= from && !give(&item)? {
            return Ok(());
        }
        let mut ask = QueryRequest::partition(
            &table::execution(execution),
            Some((BEGINS, &table::turns(&head.run_id))),
        );
        ask.backwards = backwards;
        if !backwards {
            ask.filter = Some("#last >= :from".to_owned());
            ask.values.push((":from", number(from.0)));
        }
        let mut next = None;
        loop {
            let (items, after) = self.client.page(&ask, next)?;
            for item in &items {
                if !give(item)? {
                    return Ok(());
                }
            }
            if after.is_none() {
                break;
            }
            next = after;
        }
        // The head of an execution that waited to begin holds no turns.
        if backwards && head.last > EventId(0) {
            give(&item)?;
        }
        Ok(())
    }
}

impl Listing for DynamoStore {
    fn record(&self, execution: &str) -> Result<Option<ExecutionRecord>, StoreError> {
        Ok(self.head(execution)?.map(|head| head.record))
    }

    fn named(&self, flow: &str, name: &str) -> Result<Option<Text>, StoreError> {
        let key = (table::name(flow, name), HEAD.to_owned());
        if let Some((id, _)) = self.holder(&key)? {
            return Ok(Some(id));
        }
        let head = self.head(name)?;
        let same = head.filter(|head| head.record.flow == flow && head.record.name == name);
        Ok(same.map(|_| Text::from(name)))
    }

    fn keyed(&self, flow: &str, once_key: &str) -> Result<Option<Text>, StoreError> {
        let key = (table::once_key(flow, once_key), HEAD.to_owned());
        Ok(self.holder(&key)?.map(|(id, _)| id))
    }

    fn list(&self, query: &Query) -> Result<Page, StoreError> {
        if query.cursor.as_ref().is_some_and(|cursor| !is_order(cursor)) {
            return Err(StoreError::BadCursor);
        }
        let mut streams = self.streams(query)?;
        let mut page = Page::default();
        let mut last = Text::default();
        let mut looked = 0;
        while let Some(item) = self.newest(&mut streams)? {
            let place = order(&item);
            if query.cursor.as_ref().is_some_and(|cursor| *place >= **cursor) || self.is_over(&item) {
                continue;
            }
            let record = record::read(&item)?;
            looked += 1;
            if !query.fits(&record) {
                if looked >= LOOKED {
                    page.next = Some(Text::from(place));
                    break;
                }
                continue;
            }
            if page.items.len() >= query.limit {
                page.next = Some(last).filter(|last| !last.is_empty());
                break;
            }
            last = Text::from(place);
            page.items.push(Listed {
                id: id_of(&item),
                record,
            });
        }
        Ok(page)
    }

    fn counts(&self) -> Result<Vec<(Status, u64)>, StoreError> {
        let ask = QueryRequest {
            index: Some(EXECUTIONS),
            ..QueryRequest::default()
        };
        let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
        let mut from = None;
        loop {
            let (items, next) = self.client.page(&ask, from)?;
            for item in items.iter().filter(|item| !self.is_over(item)) {
                let digit = text_of(item, PLACE).and_then(|place| place.split('#').next()?.parse().ok());
                *counts.entry(digit.unwrap_or_default()).or_default() += 1;
            }
            if next.is_none() {
                break;
            }
            from = next;
        }
        let counted = counts.into_iter();
        Ok(counted
            .filter_map(|(code, count)| Some((*STATUS_CODES.get(code)?, count)))
            .collect())
    }

    fn turn_of(&self, execution: &str, event: EventId) -> Result<Option<Turn>, StoreError> {
        let mut found = None;
        if event.0 > 0 {
            self.walk(execution, event, false, |turn| {
                found = Some(turn);
                false
            })?;
        }
        Ok(found)
    }

    fn last_turn(&self, execution: &str) -> Result<Option<Turn>, StoreError> {
        let mut found = None;
        self.walk(execution, EventId(u64::MAX), true, |turn| {
            found = Some(turn);
            false
        })?;
        Ok(found)
    }

    fn turns(&self, execution: &str, from: EventId, events: u32, backwards: bool) -> Result<Vec<Turn>, StoreError> {
        let mut page = TurnPage::new(from, events, backwards).bounded();
        let mut found = Vec::new();
        self.walk(execution, from.max(EventId(1)), backwards, |turn| {
            let taken = page.takes(&turn.head());
            if taken {
                found.push(turn);
            }
            taken && page.wants_more()
        })?;
        Ok(found)
    }

    /// The texts are read: an item has 400 KB at most, and tells no size of a part of it.
    fn turn_heads(
        &self,
        execution: &str,
        from: EventId,
        events: u32,
        backwards: bool,
    ) -> Result<Vec<TurnHead>, StoreError> {
        let mut page = TurnPage::new(from, events, backwards);
        let mut found = Vec::new();
        self.walk(execution, from.max(EventId(1)), backwards, |turn| {
            let head = turn.head();
            if page.takes(&head) {
                found.push(head);
            }
            page.wants_more()
        })?;
        Ok(found)
    }

    fn logs(&self, _: &str, _: EventId, _: usize) -> Result<Option<Vec<AttemptLog>>, StoreError> {
        // An item holds 400 KB, and every write of logs costs money, so this store leaves them out.
        Ok(None)
    }
}
