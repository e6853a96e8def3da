import Browsers
import ChildPrograms
import Foundation
import NighCore
import NighTestKit
import Testing

/// Browsers that look like phones to a page, as guests of our programs.
@Suite("A phone") struct PhoneTests {
    private let folder = TemporaryFolder()

    // MARK: Chat

    @Test(arguments: DrivenBrowser.Kind.allCases)
    func `A phone in a chat has each line once and in order`(kind: DrivenBrowser.Kind) async throws {
        try await Phone.scan("nigh", ["chat"], in: folder, with: kind, title: "Chat with Puma") { phone in
            let (program, browser) = (phone.host.program, phone.browser)
            try browser.waitUntilShown("not encrypted")
            try browser.run("document.getElementById('name').value = ''")
            try browser.tap("#name")
            try browser.type("Anna")
            try browser.press("Enter")
            try program.line(with: "Anna", "has joined, over web")
            var said = 0
            for round in 0..<3 {
                if round > 0 {
                    try browser.reload()
                    // It joins again by itself.
                    try program.line(with: "has joined, over web", occurrence: round + 1)
                }
                for turn in 0..<5 {
                    // A line of each side is under way when the wire is cut.
                    program.type("desk \(said)")
                    try phone.waitUntilShown("textarea, #room input")
                    try browser.tap("#room textarea, #room input")
                    try browser.type("phone \(said)")
                    try browser.press("Enter")
                    if round > 0 || turn > 0 { try phone.wire.cut() }
                    try program.line(with: "Anna: phone \(said)")
                    try browser.waitUntilShown("desk \(said)")
                    said += 1
                }
                let shown: String = try browser.evaluate("document.body.innerText")
                let own = (said - 5..<said).map { "desk \($0)" }
                #expect(shown.split(separator: "\n").map(String.init).filter { $0.hasPrefix("desk ") } == own)
            }
            let heard = program.lines.filter { $0.contains("Anna: phone ") }
            #expect(heard == (0..<said).map { "Anna: phone \($0)" })
        }
    }

    // MARK: Files

    /// How many bytes are sent. `GUEST_MEGABYTES` names another size, for a measurement.
    private static let size =
        1_000_000 * (ProcessInfo.processInfo.environment["GUEST_MEGABYTES"].flatMap { Int($0) } ?? 20)

    private func makeFile(_ name: String) throws -> (path: String, hash: [UInt8]) {
        var generator = SeededGenerator(seed: 7)
        let bytes = (0..<Self.size / 8).map { _ in generator.next() as UInt64 }
        let path = "\(folder.path)/\(name)"
        try bytes.withUnsafeBytes { try Data($0).write(to: URL(fileURLWithPath: path)) }
        return (path, bytes.withUnsafeBytes { SHA256.hash($0) })
    }

    private func folder(named name: String) throws -> String {
        let path = "\(folder.path)/\(name)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }

    private func hash(of path: String) throws -> [UInt8] {
        try Data(contentsOf: URL(fileURLWithPath: path)).withUnsafeBytes { SHA256.hash($0) }
    }

    @Test(arguments: DrivenBrowser.Kind.allCases)
    func `Files of a phone arrive whole after cuts and a reload`(kind: DrivenBrowser.Kind) async throws {
        let file = try makeFile("holiday.mov")
        let arguments = ["receive", "--into", try folder(named: "in")]
        try await Phone.scan("nigh", arguments, in: folder, with: kind, title: "Send files to Puma") {
            phone in
            let (program, browser) = (phone.host.program, phone.browser)
            try browser.tap("#choices button")
            for round in 0..<2 {
                try phone.waitUntilShown("input[type=file]")
                try browser.choose([file.path], in: "input[type=file]")
                try program.error(with: "sends", "holiday.mov", occurrence: round + 1)
                try phone.wire.cut()
                // The transfer goes on when the file is chosen again.
                if round == 0 { try browser.reload() }
            }
            try program.line(with: "received", "holiday.mov")
            #expect(try hash(of: "\(folder.path)/in/holiday.mov") == file.hash)
            try browser.waitUntilShown("Done")
            try browser.tap("#leave")
            #expect(try program.end().status == 0, "it ends when the guest leaves")
        }
    }

    @Test(arguments: DrivenBrowser.Kind.allCases)
    func `A phone fetches files whole after cuts and a reload`(kind: DrivenBrowser.Kind) async throws {
        let file = try makeFile("holiday.mov")
        let saved = try folder(named: "saved")
        try await Phone.scan(
            "nigh", ["send", file.path], in: folder, with: kind, title: "Get files from Puma",
            prepare: { try $0.saveDownloads(in: saved) }
        ) { phone in
            let browser = phone.browser
            try browser.tap("#choices button")
            try browser.waitUntilShown("holiday.mov")
            try browser.reload()
            try browser.waitUntilShown("holiday.mov")
            try browser.tap("#room button")
            try phone.wire.cut()
            try phone.waitUntilShown("#room a[download]", within: .seconds(120))
            #expect(try hash(of: browser.download("#room a[download]")) == file.hash)
            #expect(try phone.host.program.end().status == 0, "it ends when the file was fetched")
        }
    }

    // MARK: Four in a Row

    @Test(arguments: DrivenBrowser.Kind.allCases)
    func `A phone plays two games to the end over cuts and reloads`(kind: DrivenBrowser.Kind) async throws {
        try await Phone.scan(
            "fourinarow", ["host", "--plain"], in: folder, with: kind, title: "Play Four in a Row with Puma"
        ) { phone in
            let (program, browser) = (phone.host.program, phone.browser)
            try browser.run("document.getElementById('name').value = 'Anna'")
            try browser.tap("#choices button")
            // Without a question to the host.
            try program.line(with: "Anna", "sits down")

            // The host moves first, and piles up a column beside the phone's.
            try Self.play(phone, hosts: [1, 1, 1, 2], phones: [7, 7, 7, 7])
            try browser.waitUntil("document.querySelector('.headline').innerText.includes('You win')")
            try program.line(with: "Anna wins")
            try browser.tap(".again")

            // Whoever asks for another game moves first.
            try Self.play(phone, hosts: [4, 4, 4, 4], phones: [1, 2, 1, 2], phoneBegins: true)
            try program.line(with: "You win!")
            try browser.waitUntil("document.querySelector('.headline').innerText.includes('Puma wins')")

            // A page that is loaded again is the same guest, and sits down again.
            for _ in 0..<2 {
                try browser.reload()
                try phone.waitUntilShown(".board")
            }
            try browser.tap("#leave")
            try program.line(with: "Anna", "left")
        }
    }

    /// Plays the moves of both in turn. The wire is cut while a move of each is on its way.
    private static func play(
        _ phone: Phone, hosts: [Int], phones: [Int], phoneBegins: Bool = false
    ) throws {
        var discs = 0
        func shown() throws {
            discs += 1
            let count = "document.querySelectorAll('.board .disc:not(.pending)').length"
            try phone.browser.waitUntil("\(count) >= \(discs)")
        }
        for (turn, (own, theirs)) in zip(hosts, phones).enumerated() {
            let moves: [() throws -> Void] = [
                {
                    phone.host.program.type("\(own)")
                    if turn == 1 { try phone.wire.cut() }
                    try shown()
                },
                {
                    try phone.browser.tap(".board button:nth-child(\(theirs))")
                    if turn == 2 { try phone.wire.cut() }
                    try shown()
                },
            ]
            for move in phoneBegins ? moves.reversed() : moves { try move() }
        }
    }
}
