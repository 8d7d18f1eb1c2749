//! What a connection sends and gives back: windows, heads in frames, priorities, leaving.

use super::*;
use crate::http2::client_in_memory::*;

#[test]
fn a_busy_client_is_no_flood() {
    let mut client = Client::new();
    for n in 0..5_000 {
        let stream = StreamId(n * 2 + 1);
        client.send(&get(stream.0));
        assert!(client.connection.head_frames(stream, 30, false).is_some());
        assert!(client.connection.data_frame(stream, 10_000, true).is_some());
        (0..4).for_each(|_| client.send(&window_update(0, 2_500)));
        client.send(&frame(FrameType::Ping, 0, 0, &[0; 8]));
        client.connection.control_written(usize::MAX);
    }
    client.send(&post(20_001));
    for _ in 0..20_000 {
        client.send(&data(20_001, 0, 1_000));
    }
    assert!(!client.heard.iter().any(|line| line.starts_with("error")));
}

#[test]
fn what_is_not_read_stops_its_sender() {
    let mut client = Client { reads_bodies: false, ..Client::new() };
    client.send(&post(1));
    (0..4).for_each(|_| client.send(&data(1, 0, 16_000)));
    assert_eq!(client.control(), Vec::<String>::new());
    client.send(&data(1, 0, 1_536));
    assert_eq!(client.heard.last().map(String::as_str), Some("ended 1 FlowControlError stream-window-exceeded"));
    let mut reader = Client { reads_bodies: false, ..Client::new() };
    reader.send(&post(1));
    (0..4).for_each(|_| reader.send(&data(1, 0, 16_000)));
    reader.connection.release(StreamId(1), 32_000);
    assert_eq!(reader.control(), Vec::<String>::new(), "late");
    reader.connection.release(StreamId(1), 32_000);
    assert_eq!(reader.control(), ["WINDOW 1 129535"], "once, and the window has grown");
}

/// bad-inputs G38.
#[test]
fn windows_bound_what_is_sent_and_may_become_negative() {
    let mut client = Client::new();
    client.send(&[setting(4, 20_000), get(1)].concat());
    let (connection, stream) = (&mut client.connection, StreamId(1));
    assert_eq!(connection.sendable(stream), DATA_PAYLOAD_BYTES_MAX);
    assert!(connection.data_frame(stream, DATA_PAYLOAD_BYTES_MAX, false).is_some());
    assert_eq!(connection.sendable(stream), 20_000 - DATA_PAYLOAD_BYTES_MAX);
    assert_eq!(connection.data_frame(stream, 5_000, false), None, "more than may be sent");
    client.send(&setting(4, 1));
    assert_eq!(client.connection.sendable(stream), 0);
    client.send(&window_update(1, (DATA_PAYLOAD_BYTES_MAX - 1) as u32));
    assert_eq!(client.connection.sendable(stream), 0);
    client.send(&window_update(1, 3));
    assert_eq!(client.connection.sendable(stream), 3);
    client.send(&setting(4, 11));
    assert_eq!(client.connection.sendable(stream), 13);
    assert_eq!(
        client.connection.data_frame(stream, 13, true).map(|head| head[..5].to_vec()),
        Some(vec![0, 0, 13, 0, 1])
    );
    assert_eq!((client.connection.may_send(stream), client.connection.streams_count()), (false, 0));
    assert_eq!(client.heard.last().map(String::as_str), Some("window 0"));
}

#[test]
fn all_streams_share_the_window_of_the_connection() {
    let mut client = Client::new();
    client.send(&[get(1), get(3)].concat());
    for _ in 0..4 {
        let bytes = client.connection.sendable(StreamId(1)).min(16_000);
        assert!(client.connection.data_frame(StreamId(1), bytes, false).is_some());
    }
    assert_eq!(client.connection.sendable(StreamId(3)), 65_535 - 64_000);
    assert!(client.connection.data_frame(StreamId(3), 1_535, false).is_some());
    assert_eq!((client.connection.sendable(StreamId(1)), client.connection.sendable(StreamId(3))), (0, 0));
    client.connection.set_ready(StreamId(3), true);
    assert_eq!(client.connection.next_to_write(|_| true), None);
    assert_eq!(client.connection.next_to_write(|_| false), Some(StreamId(3)), "a head needs no window");
    client.send(&window_update(0, 70_000));
    assert_eq!(client.connection.sendable(StreamId(3)), DATA_PAYLOAD_BYTES_MAX);
    assert_eq!(client.heard.last().map(String::as_str), Some("window 0"));
}

#[test]
fn a_large_head_is_cut_into_frames_and_a_size_update_goes_first() {
    let mut client = Client::new();
    client.send(&[setting(1, 0), get(1), get(3)].concat());
    let frames: Vec<_> = client.connection.head_frames(StreamId(1), 40_000, true).expect("it is open").collect();
    let shape = |frame: &HeadFrame| (frame.bytes()[3..5].to_vec(), frame.bytes().len(), frame.block_bytes);
    let shapes: Vec<_> = frames.iter().map(shape).collect();
    assert_eq!(shapes, [(vec![1, 1], 10, 16_383), (vec![9, 0], 9, 16_384), (vec![9, 4], 9, 7_233)]);
    assert_eq!(frames[0].bytes()[..3], [0, 0x40, 0]);
    let next: Vec<_> = client.connection.head_frames(StreamId(3), 10, false).expect("it is open").collect();
    assert_eq!(next.iter().map(shape).collect::<Vec<_>>(), [(vec![1, 4], 9, 10)], "the update is said once");
}

/// RFC 9218 §10.
#[test]
fn the_most_urgent_writes_first_and_incremental_ones_in_turn() {
    let with = |priority: &str| [GET, b"\0\x08priority", &[priority.len() as u8], priority.as_bytes()].concat();
    let mut client = Client::new();
    client.send(&frame(FrameType::PriorityUpdate, 0, 0, b"\0\0\0\x0bu=0"));
    for (stream, priority) in [(1, "u=5"), (3, "u=2, i"), (5, "u=2, i"), (7, "u=2, i"), (9, "u=7"), (11, "u=7")] {
        client.send(&frame(FrameType::Headers, END_HEADERS | END_STREAM, stream, &with(priority)));
        client.connection.set_ready(StreamId(stream), true);
    }
    let mut order = Vec::new();
    let mut write = |client: &mut Client, is_done: bool| {
        let stream = client.connection.next_to_write(|_| true).expect("one is ready");
        client.connection.set_ready(stream, !is_done);
        order.push(stream.0);
    };
    write(&mut client, true);
    (0..4).for_each(|_| write(&mut client, false));
    (0..3).for_each(|_| write(&mut client, true));
    client.send(&frame(FrameType::PriorityUpdate, 0, 0, b"\0\0\0\x09u=1"));
    (0..2).for_each(|_| write(&mut client, true));
    assert_eq!(order, [11, 3, 5, 7, 3, 5, 7, 3, 9, 1]);
    assert_eq!(client.connection.next_to_write(|_| true), None);
}

/// RFC 9113 §6.8; bad-inputs G40.
#[test]
fn leaving_takes_two_steps() {
    let mut client = Client::new();
    client.send(&get(1));
    client.connection.announce_leaving();
    client.send(&get(3));
    client.connection.leave();
    client.send(
        &[get(5), data(5, END_STREAM, 300), window_update(5, 1), frame(FrameType::Ping, 0, 0, b"12345678")].concat(),
    );
    assert_eq!(client.heard, ["request 1 GET / whole", "request 3 GET / whole"]);
    assert_eq!(client.control(), ["GOAWAY 2147483647 NoError ", "GOAWAY 3 NoError ", "PING 1 12345678"]);
    assert!(!client.connection.has_left());
    for stream in [1, 3] {
        assert!(client.connection.head_frames(StreamId(stream), 9, true).is_some());
    }
    assert!(client.connection.has_left());
    let ping = frame(FrameType::Ping, 0, 0, b"87654321");
    client.send(&[frame(FrameType::GoAway, 0, 0, b"\0\0\0\0\0\0\0\0some words"), ping].concat());
    assert_eq!(client.heard.last().map(String::as_str), Some("gone NoError"));
    assert_eq!(client.control(), ["PING 1 87654321"], "the words are skipped");
    client.send(&[get(7), data(9, 0, 1)].concat());
    assert_eq!(client.control(), ["GOAWAY 3 ProtocolError data-on-idle-stream"], "not 7, which nobody worked on");
}

#[test]
fn an_answer_may_end_before_the_request_does() {
    let mut client = Client::new();
    client.send(&post(1));
    assert!(client.connection.head_frames(StreamId(1), 9, true).is_some());
    assert!(client.connection.awaits_body(StreamId(1)) && !client.connection.may_send(StreamId(1)));
    client.connection.reset(StreamId(1), ErrorCode::NoError);
    assert_eq!((client.control(), client.connection.streams_count()), (vec!["RST 1 NoError".to_string()], 0));
}

#[test]
fn an_idle_connection_holds_next_to_nothing() {
    let mut client = Client::new();
    for n in 0..50 {
        client.send(&get(n * 2 + 1));
    }
    for n in 0..50 {
        assert!(client.connection.head_frames(StreamId(n * 2 + 1), 9, true).is_some());
    }
    client.connection.shrink();
    assert!(client.connection.is_idle());
    assert_eq!(client.connection.heap_bytes(), 0);
}
