//! The ways beside a list: those that lead on at its right, those that lead back at its left.
//!
//! Ways of the same kind to the same step share a lane. A lane runs close to the boxes it passes, not to the widest of the
//! column. Between columns, ways run below all columns if they lead on, and above them if they lead back. No way crosses
//! a box: beside a step its column is empty, and between columns there are only lanes. If there are more ways than lanes,
//! the boxes name the others, but they are not drawn.

use super::card::Side;
use super::grid::{BESIDE, Grid};
use super::{Line, LineKind};
use std::collections::BTreeMap;

/// The space between lanes.
const LANE_PX: i32 = 9;
/// The largest number of lanes beyond a column's widest box, and of tracks above or below.
const MAX_LANES: i32 = 40;
/// The space between ways that share a lane one after the other.
const LANE_GAP_PX: i32 = 8;
/// The space between the columns and the first track.
const FIRST_TRACK_GAP_PX: i32 = 30;
/// The length of a way that is named but not drawn.
const STUB_PX: i32 = 10;
/// A distance beyond all columns.
const BEYOND: i32 = i32::MAX / 4;

/// The ways of one kind to one item.
#[derive(Clone, Debug)]
struct Bus {
    to: usize,
    kind: LineKind,
    side: Side,
    /// Items, the heights of their ports, and whether the way was taken.
    from: Vec<(usize, i32, bool)>,
    /// Its track, if it spans columns.
    track: Option<i32>,
}

/// A bus beside one column. Lane 0 is the first beside the column's widest box; those below it are closer.
#[derive(Clone, Debug)]
struct Leg {
    low: i32,
    high: i32,
    lane: Option<i32>,
}

/// All buses of a list, and their lanes.
pub(super) struct Gutters {
    buses: Vec<Bus>,
    /// By bus and column.
    legs: BTreeMap<(usize, usize), Leg>,
    /// How many lanes there are beyond the widest box, at the left and right of each column.
    lanes: Vec<[i32; 2]>,
}

/// Lines, and the room they take above and below the columns.
pub(super) struct Routed {
    pub(super) lines: Vec<Line>,
    pub(super) joints: Vec<(i32, i32, LineKind)>,
    pub(super) above: i32,
    pub(super) below: i32,
}

impl Gutters {
    /// Finds the lanes; the `x` of columns need not be known.
    pub(super) fn new(grid: &Grid<'_>) -> Self {
        let buses = buses(grid);
        let mut legs = BTreeMap::new();
        for (number, bus) in buses.iter().enumerate() {
            for (column, leg) in bus.legs(grid) {
                legs.insert((number, column), leg);
            }
        }
        let mut gutters = Self {
            buses,
            legs,
            lanes: vec![[0; 2]; grid.columns.len()],
        };
        gutters.assign(grid);
        gutters
    }

    fn assign(&mut self, grid: &Grid<'_>) {
        let mut beside: BTreeMap<(usize, Side), Vec<usize>> = BTreeMap::new();
        for &(bus, column) in self.legs.keys() {
            beside.entry((column, self.buses[bus].side)).or_default().push(bus);
        }
        for ((column, side), buses) in beside {
            let spans: Vec<Span> = buses
                .iter()
                .filter_map(|bus| self.legs.get(&(*bus, column)))
                .map(|leg| Span {
                    low: leg.low,
                    high: leg.high,
                    first: first_lane(grid, column, side, leg),
                })
                .collect();
            let lanes = share(&spans);
            let count = lanes.iter().flatten().max().map_or(0, |most| most + 1);
            self.lanes[column][side as usize] = count.max(0);
            for (bus, lane) in buses.into_iter().zip(lanes) {
                if let Some(leg) = self.legs.get_mut(&(bus, column)) {
                    leg.lane = lane;
                }
            }
        }
    }

    /// The room that the lanes at a side of a column take.
    pub(super) fn width(&self, column: usize, side: Side) -> i32 {
        match self.lanes[column][side as usize] {
            0 => 0,
            lanes => BESIDE + LANE_PX * lanes,
        }
    }

    /// The `x` of a bus beside a column, if it has a lane there.
    fn lane(&self, grid: &Grid<'_>, bus: usize, column: usize) -> Option<i32> {
        let offset = BESIDE + LANE_PX * self.legs.get(&(bus, column))?.lane?;
        let place = &grid.columns[column];
        Some(match self.buses[bus].side {
            Side::Left => place.x - offset,
            Side::Right => place.x + place.w + offset,
        })
    }
}

fn buses(grid: &Grid<'_>) -> Vec<Bus> {
    let mut buses: BTreeMap<(usize, LineKind, Side), Bus> = BTreeMap::new();
    for (item, ports) in grid.items.iter().enumerate() {
        let top = grid.at[item].1;
        for port in &ports.ports {
            // The list's first item may be the flow's beginning, so places are those of items and not of steps.
            let bus = buses.entry((port.to, port.kind, port.side)).or_insert_with(|| Bus {
                to: port.to,
                kind: port.kind,
                side: port.side,
                from: Vec::new(),
                track: None,
            });
            bus.from.push((item, top + port.y, port.taken));
        }
    }
    buses.into_values().filter(|bus| bus.to < grid.items.len()).collect()
}

impl Bus {
    /// The height at which it arrives.
    fn arrival(&self, grid: &Grid<'_>) -> i32 {
        // A goto and a catch may arrive at the same side.
        let shift = if self.kind == LineKind::Catch { 5 } else { -4 };
        grid.at[self.to].1 + grid.items[self.to].arrival + shift
    }

    /// The spans that it takes beside each column.
    fn legs(&self, grid: &Grid<'_>) -> BTreeMap<usize, Leg> {
        let target = grid.at[self.to].0;
        let mut legs: BTreeMap<usize, Leg> = BTreeMap::new();
        let mut span = |column: usize, y: i32| {
            let leg = legs.entry(column).or_insert(Leg {
                low: y,
                high: y,
                lane: None,
            });
            leg.low = leg.low.min(y);
            leg.high = leg.high.max(y);
        };
        let beyond = if self.side == Side::Right { BEYOND } else { -BEYOND };
        for &(item, y, _) in &self.from {
            let column = grid.at[item].0;
            span(column, y);
            span(target, self.arrival(grid));
            if column != target {
                span(column, beyond);
                span(target, beyond);
            }
        }
        legs
    }
}

/// The lane that is closest to the boxes that a leg passes.
fn first_lane(grid: &Grid<'_>, column: usize, side: Side, leg: &Leg) -> i32 {
    let passed = grid.items.iter().zip(&grid.at).filter(|(item, at)| {
        let (of, top) = **at;
        of == column && top <= leg.high && leg.low <= top + item.h
    });
    let room = passed.map(|(item, _)| half(grid.columns[column].w, side) - half(item.w, side));
    -(room.min().unwrap_or(0) / LANE_PX)
}

/// How far something of this width reaches to a side of its middle.
fn half(w: i32, side: Side) -> i32 {
    match side {
        Side::Left => w / 2,
        Side::Right => w - w / 2,
    }
}

/// A span that needs a lane, the first that it may have or a later one.
#[derive(Clone, Copy, Debug)]
struct Span {
    low: i32,
    high: i32,
    first: i32,
}

/// Finds lanes for spans so that none overlap. Short spans get the first lanes; `None` for a span without a lane.
fn share(spans: &[Span]) -> Vec<Option<i32>> {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|&index| (spans[index].high - spans[index].low, spans[index].low, index));
    let mut lanes: BTreeMap<i32, BTreeMap<i32, i32>> = BTreeMap::new();
    let mut found = vec![None; spans.len()];
    for index in order {
        let (low, high) = (spans[index].low - LANE_GAP_PX, spans[index].high + LANE_GAP_PX);
        let free = |lane: &BTreeMap<i32, i32>| lane.range(..high).next_back().is_none_or(|(_, end)| *end <= low);
        let mut ahead = spans[index].first..MAX_LANES;
        let Some(lane) = ahead.find(|lane| lanes.get(lane).is_none_or(free)) else {
            continue;
        };
        lanes.entry(lane).or_default().insert(low, high);
        found[index] = Some(lane);
    }
    found
}

/// Draws all buses, when the `x` of columns is known.
pub(super) fn route(grid: &Grid<'_>, mut gutters: Gutters) -> Routed {
    let below = tracks(grid, &mut gutters, Side::Right);
    let above = tracks(grid, &mut gutters, Side::Left);
    let mut routed = Routed {
        lines: Vec::new(),
        joints: Vec::new(),
        above,
        below,
    };
    for number in 0..gutters.buses.len() {
        let tracer = Tracer {
            grid,
            gutters: &gutters,
            bus: number,
        };
        let bus = &gutters.buses[number];
        let taken = bus.from.iter().filter(|(_, _, taken)| *taken).count();
        if taken < bus.from.len() {
            tracer.trace(&mut routed, false);
        }
        if taken > 0 {
            tracer.trace(&mut routed, true);
        }
    }
    routed
}

/// Gives tracks to the buses of a side that span columns. Returns the room they take.
fn tracks(grid: &Grid<'_>, gutters: &mut Gutters, side: Side) -> i32 {
    let mut spans = Vec::new();
    let mut spanning = Vec::new();
    for (number, bus) in gutters.buses.iter().enumerate().filter(|(_, bus)| bus.side == side) {
        let columns = gutters.legs.range((number, 0)..=(number, usize::MAX));
        let lanes: Vec<i32> = columns
            .filter_map(|((_, column), _)| gutters.lane(grid, number, *column))
            .collect();
        let target = gutters.lane(grid, number, grid.at[bus.to].0);
        if let (Some(low), Some(high), true, Some(_)) =
            (lanes.iter().min(), lanes.iter().max(), lanes.len() > 1, target)
        {
            spans.push(Span {
                low: *low,
                high: *high,
                first: 0,
            });
            spanning.push(number);
        }
    }
    let found = share(&spans);
    let count = found.iter().flatten().max().map_or(0, |most| most + 1);
    for (number, track) in spanning.into_iter().zip(found) {
        gutters.buses[number].track = track;
    }
    if count == 0 {
        0
    } else {
        FIRST_TRACK_GAP_PX + LANE_PX * count
    }
}

/// Draws one bus.
struct Tracer<'a> {
    grid: &'a Grid<'a>,
    gutters: &'a Gutters,
    bus: usize,
}

impl Tracer<'_> {
    /// Draws it from all its sources, or only from those that were taken. In each column the way from the farthest
    /// source is drawn whole, and the others join it.
    fn trace(&self, routed: &mut Routed, taken: bool) {
        let bus = &self.gutters.buses[self.bus];
        let target = self.grid.at[bus.to].0;
        let mut columns: BTreeMap<usize, Vec<(usize, i32)>> = BTreeMap::new();
        for &(item, y, _) in bus.from.iter().filter(|from| from.2 || !taken) {
            columns.entry(self.grid.at[item].0).or_default().push((item, y));
        }
        let own = columns.contains_key(&target);
        // The way from the farthest source is drawn whole; what joins it on the way ends there. Columns are visited
        // from left to right, and ways that lead back come from the right.
        let furthest = match bus.side {
            Side::Right => columns.keys().next().copied(),
            Side::Left => columns.keys().next_back().copied(),
        };
        for (column, from) in columns {
            let Some(mut path) = self.path(column, target) else {
                for (item, y) in from {
                    self.stub(routed, item, y, taken);
                }
                continue;
            };
            let joins = if column == target || Some(column) == furthest && !own {
                path.len()
            } else if Some(column) == furthest {
                path.len() - 1
            } else {
                1
            };
            if let Some(&(x, y)) = path.get(joins - 1).filter(|_| joins < path.len()) {
                routed.joints.push((x, y, bus.kind));
            }
            path.truncate(joins);
            self.column(
                routed,
                &path,
                from,
                taken,
                column == target || !own && Some(column) == furthest,
            );
        }
    }

    /// The way from the lane beside a column to the target, without its first point.
    fn path(&self, column: usize, target: usize) -> Option<Vec<(i32, i32)>> {
        let bus = &self.gutters.buses[self.bus];
        let lane = self.gutters.lane(self.grid, self.bus, column)?;
        let end = (self.grid.side(bus.to, bus.side), bus.arrival(self.grid));
        if column == target {
            return Some(vec![(lane, end.1), end]);
        }
        let last = self.gutters.lane(self.grid, self.bus, target)?;
        let offset = FIRST_TRACK_GAP_PX + LANE_PX * bus.track?;
        let track = match bus.side {
            Side::Right => self.grid.height() + offset,
            Side::Left => -offset,
        };
        Some(vec![(lane, track), (last, track), (last, end.1), end])
    }

    fn column(&self, routed: &mut Routed, path: &[(i32, i32)], mut from: Vec<(usize, i32)>, taken: bool, arrow: bool) {
        let bus = &self.gutters.buses[self.bus];
        let Some(&(lane, bend)) = path.first() else {
            return;
        };
        from.sort_by_key(|(_, y)| std::cmp::Reverse((y - bend).abs()));
        for (index, (item, y)) in from.into_iter().enumerate() {
            let side = self.grid.side(item, bus.side);
            let mut points = vec![(side, y), (lane, y)];
            if index == 0 {
                points.extend_from_slice(path);
            } else {
                routed.joints.push((lane, y, bus.kind));
            }
            routed.lines.push(Line {
                points,
                kind: bus.kind,
                taken,
                arrow: arrow && index == 0,
            });
        }
    }

    fn stub(&self, routed: &mut Routed, item: usize, y: i32, taken: bool) {
        let bus = &self.gutters.buses[self.bus];
        let side = self.grid.side(item, bus.side);
        let end = if bus.side == Side::Right {
            side + STUB_PX
        } else {
            side - STUB_PX
        };
        routed.lines.push(Line {
            points: vec![(side, y), (end, y)],
            kind: bus.kind,
            taken,
            arrow: true,
        });
    }
}
