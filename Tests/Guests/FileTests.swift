import Browsers
import ChildPrograms
import Foundation
import NighCore
import NighTestKit
import Testing

@Suite("Files of a phone") struct FileTests {
    private let folder = TemporaryFolder()

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

    @Test(
        "arrive byte for byte after cuts, and after a reload go on when they are chosen again",
        arguments: DrivenBrowser.Kind.allCases)
    func up(_ kind: DrivenBrowser.Kind) async throws {
        try await withBrowser {
            let file = try makeFile("holiday.mov")
            let host = try GuestHost("nigh", ["receive", "--into", try folder(named: "in")], in: folder)
            let wire = try CuttableWire(to: host)
            let browser = try DrivenBrowser(kind, resolving: [host.name])
            try browser.use(.phone)
            try browser.open(wire.url(of: host))
            try browser.waitUntilShown("Send files to Puma")
            try browser.tap("#choices button")
            try browser.waitUntil("document.querySelector('input[type=file]') != null")
            for round in 0..<2 {
                try browser.choose([file.path], in: "input[type=file]")
                try host.program.error(with: "sends", "holiday.mov", occurrence: round + 1)
                try wire.cut()
                if round == 0 {
                    try browser.reload()
                    try browser.waitUntil("document.querySelector('input[type=file]') != null")
                }
            }
            try host.program.line(with: "received", "holiday.mov")
            #expect(try hash(of: "\(folder.path)/in/holiday.mov") == file.hash)
            try browser.waitUntilShown("Done")
            try browser.tap("#leave")
            #expect(try host.program.end().status == 0, "it ends when the guest leaves")
        }
    }

    @Test(
        "can be fetched byte for byte, after cuts and after a reload", arguments: DrivenBrowser.Kind.allCases)
    func down(_ kind: DrivenBrowser.Kind) async throws {
        try await withBrowser {
            let file = try makeFile("holiday.mov")
            let host = try GuestHost("nigh", ["send", file.path], in: folder)
            let wire = try CuttableWire(to: host)
            let browser = try DrivenBrowser(kind, resolving: [host.name])
            try browser.use(.phone)
            try browser.saveDownloads(in: try folder(named: "saved"))
            try browser.open(wire.url(of: host))
            try browser.waitUntilShown("Get files from Puma")
            try browser.tap("#choices button")
            try browser.waitUntilShown("holiday.mov")
            try browser.reload()
            try browser.waitUntilShown("holiday.mov")
            try browser.tap("#room button")
            try wire.cut()
            try browser.waitUntil(
                "document.querySelector('#room a[download]') != null", within: .seconds(120))
            try browser.tap("#room a[download]")
            #expect(try hash(of: browser.downloadedFile()) == file.hash)
            #expect(try host.program.end().status == 0, "it ends when the file was fetched")
        }
    }
}
