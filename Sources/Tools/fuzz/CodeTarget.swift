import NighCodes
import NighCore

/// Two sides of a code exchange, and somebody between them who does not know the code: passes messages on, changes
/// them, repeats those of earlier exchanges, and takes either side's place with a guess. Neither side may take the
/// other for one that knows the code, unless nothing was changed.
enum CodeTarget {
    private static let peers = [1, 2, 3].map { seed in Identity.ephemeral(seed: seed).peerID }
    private static let materials = (0..<3).map { number in
        SecretBytes(copying: Array(repeating: UInt8(number), count: 32))
    }

    static func run(_ mutator: inout Mutator) throws {
        let right = CodeKey(number: SecretBytes(copying: mutator.bytes(40).map { $0 | 1 }))
        let guess = CodeKey(number: SecretBytes(copying: mutator.bytes(40).map { $0 | 1 }))
        var recorded: [CodeMessage] = []
        if mutator.oneIn(2) {
            let (asking, asked) = sides(right, right, between: 0)
            recorded = try play(asking, asked) { $0 }.messages
        }
        let isHonest = mutator.oneIn(4)
        // The attacker is on a link of its own with either side, or has the place of one of them.
        let (asking, asked) =
            isHonest
            ? sides(right, right, between: 0)
            : [
                (side(.asking, right, 0, 2, over: 1), side(.asked, right, 1, 2, over: 2)),
                sides(guess, right, between: 0), sides(right, guess, between: 0),
                (side(.asking, right, 0, 1, over: 1), side(.asked, right, 1, 0, over: 2)),
            ][mutator.number(below: 4)]
        let ends = try play(asking, asked) { message in
            guard !isHonest else { return message }
            if !recorded.isEmpty, mutator.oneIn(3) { return mutator.pick(recorded) }
            var bytes = message.bytes
            if mutator.oneIn(3) { mutator.mutate(&bytes) }
            return (try? CodeMessage.take(from: &bytes)) ?? message
        }
        guard ends.isProven == isHonest else {
            throw Finding(
                isHonest ? "two sides with one code do not agree" : "a side without the code has proven it")
        }
        var bytes = mutator.bytes(mutator.number(below: 200))
        while let message = try? CodeMessage.take(from: &bytes) {
            guard message.bytes.count > 0 else { throw Finding("a message without bytes") }
        }
    }

    private static func sides(_ one: CodeKey, _ other: CodeKey, between link: Int) -> (
        CodeExchange, CodeExchange
    ) {
        (side(.asking, one, 0, 1, over: link), side(.asked, other, 1, 0, over: link))
    }

    private static func side(
        _ role: CodeExchange.Role, _ key: CodeKey, _ own: Int, _ other: Int, over link: Int
    ) -> CodeExchange {
        CodeExchange(role: role, key: key, own: peers[own], other: peers[other], material: materials[link])
    }

    /// Passes the messages of both sides through `change`, until both have ended. Returns what was said, and whether
    /// any side takes the other for one that knows the code.
    private static func play(
        _ asking: CodeExchange, _ asked: CodeExchange, _ change: (CodeMessage) -> CodeMessage
    ) throws -> (messages: [CodeMessage], isProven: Bool) {
        var sides = [asking, asked]
        var waiting: (message: CodeMessage, to: Int)? = (asking.first, 1)
        var messages: [CodeMessage] = []
        var isProven = false
        for _ in 0..<8 {
            guard let (message, to) = waiting else { break }
            messages.append(message)
            waiting = nil
            guard let step = try? sides[to].receive(change(message)) else { break }
            switch step {
            case .send(let answer): waiting = (answer, 1 - to)
            case .restart(let answer), .wrong(let answer): waiting = answer.map { ($0, 1 - to) }
            case .proven(let answer):
                isProven = true
                waiting = answer.map { ($0, 1 - to) }
            }
        }
        return (messages, isProven)
    }
}
