import Nigh

// A camera and those who watch it: `Camera film` on one device, `Camera watch` on others. When a watcher or the network
// is slow, `write` waits. The camera leaves out the pictures of that time, so nobody watches more than some pictures
// late.

let (role, transports) = (CommandLine.arguments.dropFirst(1).first, CommandLine.arguments.dropFirst(2).first)
let pictureSize = 64 << 10
let period = Duration.milliseconds(40)

/// A picture of one colour, which begins with its number.
func picture(_ number: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt32(number).bigEndian, Array.init)
        + [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: pictureSize - 4)
}

/// Sends the newest picture, again and again.
func film(for peer: Peer) async {
    do {
        let stream = try await peer.openStream(named: "camera")
        let (clock, start) = (ContinuousClock(), ContinuousClock.now)
        for sent in 1... {
            let number = Int((clock.now - start) / period)
            try await stream.write(picture(number))
            if sent % 25 == 0 { print("\(peer.name): \(sent) pictures, \(number + 1 - sent) left out") }
            try await clock.sleep(until: start + period * (number + 1))
        }
    } catch { print(error) }
}

/// Cuts a stream into pictures, and looks at them.
func watch(_ stream: ByteStream) async {
    var (bytes, seen) = ([UInt8](), 0)
    do {
        for try await piece in stream {
            bytes += piece.bytes
            while bytes.count >= pictureSize {
                let number = bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
                guard bytes.starts(with: picture(number)) else { return print("a picture is damaged") }
                bytes.removeFirst(pictureSize)
                seen += 1
                if seen % 25 == 0 { print("\(seen) pictures seen, the last is number \(number)") }
            }
        }
    } catch { print(error) }
}

do {
    try await withSession(service: "camera", transports: transports, endsOnInterrupt: true) { session in
        session.connectsAutomatically = true
        await withDiscardingTaskGroup { group in
            if role == "film" {
                for await event in session.events {
                    if case .connected(let peer) = event { group.addTask { await film(for: peer) } }
                    if case .transportDown = event { print(event) }
                }
            }
            for await stream in session.streams { group.addTask { await watch(stream) } }
        }
    }
} catch { print(error) }
