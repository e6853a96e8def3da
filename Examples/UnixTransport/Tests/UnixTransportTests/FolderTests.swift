import Foundation
import NighCore
import NighTestKit
import Testing

@testable import UnixTransport

/// Tests of the files that a transport finds in the folder, and of changes to the folder itself.
@Suite(.serialized) struct FolderTests {
    private let folder = TemporaryFolder()
    private let service: ServiceName = "unix-test"

    private func advertisement(_ name: String, peer: UInt8 = 1) -> Advertisement {
        Advertisement(
            service: service, peer: PeerID(bytes: [UInt8](repeating: peer, count: PeerID.byteCount))!,
            name: DisplayName(fitting: name))
    }

    private func path(_ name: String) -> String { "\(folder.path)/\(name)" }

    private func write(_ bytes: [UInt8], to name: String) {
        let file = open(path(name), O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        #expect(Foundation.write(file, bytes, bytes.count) == bytes.count)
        close(file)
    }

    /// Takes the lock of `id` as a running owner would. Closing it has the effect of killing that owner.
    private func lock(_ id: String) -> Int32 {
        let file = open(path(".\(id).lock"), O_WRONLY | O_CREAT, 0o600)
        #expect(flock(file, LOCK_EX | LOCK_NB) == 0)
        return file
    }

    private var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [] }
    private func exists(_ name: String) -> Bool {
        faccessat(AT_FDCWD, path(name), F_OK, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Browses until a running transport is found. Returns false if that fails, or if another peer is found after it.
    private func findsNobodyElse(_ browser: TransportLog) -> Bool {
        let other = TransportLog(folder.path)
        defer { other.end() }
        other.call { $0.advertise(advertisement("Living", peer: 9)) }
        guard other.waitFor("advertised Living") else { return false }
        browser.call { $0.browse(service) }
        return browser.waitFor("found Living") && browser.rest.filter { $0.hasPrefix("found") }.isEmpty
    }

    @Test("a peer that was killed before browsing began is not found, and its files are removed")
    func killedBefore() {
        let id = "1234567890abcdef"
        write(advertisement("Dead").bytes, to: "\(id).about")
        for name in ["\(id).socket", ".\(id).lock", ".\(id).new"] {
            write([], to: name)
        }
        write([1], to: "notes.about")
        let browser = TransportLog(folder.path)
        #expect(findsNobodyElse(browser))
        for name in ["\(id).about", "\(id).socket", ".\(id).lock", ".\(id).new"] {
            #expect(!exists(name), "\(name)")
        }
        #expect(exists("notes.about"))
        browser.end()
    }

    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test("while there is no descriptor to look with, nobody counts as dead")
    func noDescriptors() async {
        await #expect(processExitsWith: .success) {
            let (place, id) = (TemporaryFolder(), "1234567890abcdef")
            let folder = try Folder(at: place.path)
            let file = open("\(place.path)/.\(id).lock", O_WRONLY | O_CREAT, 0o600)
            #expect(flock(file, LOCK_EX | LOCK_NB) == 0)
            for count in Int32(0)..<4 {
                ResourceLimits.limitDescriptors(leaving: count)
                // It takes one for the folder, one for the lock, and one for what the owner says.
                #expect((folder.advertisements() == nil) == (count < 3), "\(count)")
                #expect(access("\(place.path)/.\(id).lock", F_OK) == 0, "\(count)")
            }
        }
    }

    @Test("a peer that is killed after it was found is reported as lost")
    func killedWhileSeen() {
        let id = "1234567890abcdef"
        let held = lock(id)
        write(advertisement("Puma").bytes, to: "\(id).about")
        let browser = TransportLog(folder.path)
        browser.call { $0.browse(service) }
        #expect(browser.waitFor("found Puma"))
        close(held)
        #expect(browser.waitFor("lost"))
        browser.end()
        #expect(!exists("\(id).about"))
    }

    @Test("unexpected files in the folder do not block browsing, and are not taken for peers")
    func hostileFiles() {
        let good = advertisement("Trap").bytes
        var held: [Int32] = []
        func id(_ number: Int) -> String { "100000000000000\(number)" }
        for number in 0..<6 { held.append(lock(id(number))) }
        write(good, to: "elsewhere")
        #expect(mkfifo(path("\(id(0)).about"), 0o600) == 0)
        #expect(symlink(path("elsewhere"), path("\(id(1)).about")) == 0)
        #expect(mkdir(path("\(id(2)).about"), 0o700) == 0)
        write(good + [UInt8](repeating: 0, count: 1 << 20), to: "\(id(3)).about")
        write([UInt8](repeating: 255, count: 500), to: "\(id(4)).about")
        write([], to: "\(id(5)).about")
        #expect(symlink("/dev/zero", path(".\(id(6)).lock")) == 0)
        write(good, to: "\(id(6)).about")
        let browser = TransportLog(folder.path)
        #expect(findsNobodyElse(browser))
        for number in 0..<6 { #expect(exists("\(id(number)).about"), "\(number)") }
        browser.end()
        held.forEach { close($0) }
    }

    @Test(
        "a dial to an invalid address, or to one where nobody listens, fails with the cause",
        arguments: [
            ("unix", "", "invalid"), ("unix", "here", "invalid"), ("unix", "/a\0b", "invalid"),
            ("tcp", "/a", "invalid"),
            ("unix", "/" + String(repeating: "a", count: 107), "invalid"),
            ("unix", "/dev/null", "nobody listens there"),
            ("unix", "/nowhere/at/all", "nobody listens there"),
        ])
    func noAddress(scheme: String, value: String, cause: String) {
        let log = TransportLog(folder.path)
        let address = TransportAddress(scheme: scheme, value: value)
        log.call { $0.dial(address, as: DialID(number: 1), timeout: .seconds(5)) }
        #expect(log.waitFor("failed \(cause)"))
        log.end()
    }

    @Test("the transport is down while others may write to the folder, and comes up afterwards")
    func writableFolder() {
        let (other, browser) = (TransportLog(folder.path), TransportLog(folder.path))
        other.call { $0.advertise(advertisement("Puma")) }
        browser.call { $0.browse(service) }
        #expect(browser.waitFor("found Puma"))
        chmod(folder.path, 0o777)
        // The other transport may notice first, and be gone when this one looks again.
        let down = "down: the folder \(folder.path) may be written by others; `chmod go-w"
        #expect(browser.waitFor(down, "lost"))
        #expect(other.waitFor("deaf"))
        chmod(folder.path, 0o700)
        #expect(browser.waitFor("up"))
        #expect(browser.waitFor("found Puma"))
        other.end()
        #expect(browser.waitFor("lost"))
        browser.end()
        #expect(names.isEmpty)
    }

    @Test("a folder that is moved away is made again, and peers are found again")
    func folderTakenAway() {
        let (other, browser) = (TransportLog(folder.path), TransportLog(folder.path))
        other.call { $0.advertise(advertisement("Puma")) }
        browser.call { $0.browse(service) }
        #expect(browser.waitFor("found Puma"))
        let away = TemporaryFolder()
        #expect(rename(folder.path, "\(away.path)/folder") == 0)
        #expect(browser.waitFor("lost"))
        #expect(browser.waitFor("found Puma"))
        #expect(other.waitFor("listening") && other.waitFor("listening"))
        other.end()
        browser.end()
    }
}
