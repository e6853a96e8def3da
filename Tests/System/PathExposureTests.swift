import Glibc
import NighTestKit
import Testing

@testable import NighCore
@testable import NighSystem

/// Tests on which paths another user could replace a file. User 1000 asks.
@Suite struct PathExposureTests {
    private static let folder: mode_t = S_IFDIR | 0o755
    private typealias Entry = PathExposure.Entry

    /// A file system in which `/home/ada/nigh/file` is safe, with changes.
    private func exposure(
        of path: String = "/home/ada/nigh/file", _ changes: [String: Entry?] = [:]
    ) -> PathExposure? {
        var entries: [String: Entry] = [
            "/": Entry(owner: 0, mode: Self.folder), "/home": Entry(owner: 0, mode: Self.folder),
            "/home/ada": Entry(owner: 1_000, mode: Self.folder),
            "/home/ada/nigh": Entry(owner: 1_000, mode: S_IFDIR | 0o700),
            "/home/ada/nigh/file": Entry(owner: 1_000, mode: S_IFREG | 0o600),
            "/tmp": Entry(owner: 0, mode: S_IFDIR | 0o1777),
            "/tmp/ada": Entry(owner: 1_000, mode: S_IFDIR | 0o700),
            "/tmp/ada/file": Entry(owner: 1_000, mode: S_IFREG | 0o600),
        ]
        for (path, entry) in changes { entries[path] = entry }
        return PathExposure(ofFileAt: path, user: 1_000) { entries[$0] }
    }

    @Test func `A file in folders of its user and of root is safe, whether it exists or not`() {
        #expect(exposure() == nil)
        #expect(exposure(of: "/home/ada/./nigh/../nigh//file") == nil)
        #expect(exposure(of: "/home/ada/nigh/missing") == nil)
    }

    @Test(arguments: ["/", "/home", "/home/ada", "/home/ada/nigh"], [0o777, 0o775, 0o757] as [mode_t])
    func `A folder that others may write to exposes what is in it, at any depth`(
        _ place: String, _ mode: mode_t
    ) {
        let owner: uid_t = place.hasPrefix("/home/ada") ? 1_000 : 0
        let found = exposure([place: Entry(owner: owner, group: 50, mode: S_IFDIR | mode)])
        #expect(found?.place == place && found?.reason == .writable(mode))
        #expect(found?.advice == "`chmod go-w \(place)`")
    }

    @Test(
        "A folder that the user's own group or root's may write to exposes nothing, unless all others may, too",
        arguments: [1_000, 0] as [gid_t])
    func ownGroup(_ group: gid_t) {
        func found(_ mode: mode_t) -> PathExposure? {
            exposure(["/home/ada": Entry(owner: 1_000, group: group, mode: S_IFDIR | mode)])
        }
        #expect(found(0o775) == nil)
        #expect(found(0o777)?.reason == .writable(0o777))
    }

    @Test(arguments: ["/home", "/home/ada", "/home/ada/nigh"])
    func `A folder of another user exposes what is in it, at any depth`(_ place: String) {
        let found = exposure([place: Entry(owner: 1_001, mode: Self.folder)])
        #expect(found?.place == place && found?.reason == .foreign(1_001) && found?.advice == nil)
    }

    @Test
    func `In a folder with the sticky bit, what belongs to the user or to root is safe, and nothing else`() {
        #expect(exposure(of: "/tmp/ada/file") == nil)
        #expect(exposure(of: "/tmp/file", ["/tmp/file": Entry(owner: 1_000, mode: S_IFREG | 0o600)]) == nil)
        let others = Entry(owner: 1_001, mode: Self.folder)
        #expect(exposure(of: "/tmp/ada/file", ["/tmp/ada": others])?.reason == .foreign(1_001))
        let link = Entry(owner: 1_001, mode: S_IFLNK | 0o777, target: "/home/ada")
        let found = exposure(of: "/tmp/link/nigh/file", ["/tmp/link": link])
        #expect(found?.place == "/tmp/link" && found?.reason == .foreign(1_001))
    }

    @Test func `The folders on the way of a link count, and a link that leads in a circle is refused`() {
        func link(_ target: String) -> Entry { Entry(owner: 1_000, mode: S_IFLNK | 0o777, target: target) }
        let open = Entry(owner: 1_000, mode: S_IFDIR | 0o777)
        for target in ["/tmp/ada", "../../tmp/ada"] {
            #expect(exposure(of: "/home/ada/link/file", ["/home/ada/link": link(target)]) == nil)
            let found = exposure(
                of: "/home/ada/link/file", ["/home/ada/link": link(target), "/tmp/ada": open])
            #expect(found?.place == "/tmp/ada")
        }
        // A link in the file's own place counts, too.
        let file = "/home/ada/nigh/file"
        #expect(exposure([file: link("/tmp/ada/file"), "/tmp/ada": open])?.place == "/tmp/ada")
        #expect(exposure([file: link("file")])?.reason == .unknown)
    }

    @Test func `A folder that cannot be examined is not trusted`() {
        #expect(exposure(["/home/ada": nil as Entry?])?.reason == .unknown)
    }

    @Test(
        "If root is nobody in a sandbox, the folders above that of the file are trusted, and that one is not"
    )
    func sandbox() {
        let nobody = Entry(owner: 65_534, mode: Self.folder)
        #expect(exposure(["/": nobody, "/home": nobody]) == nil)
        let found = exposure(["/": nobody, "/home": nobody, "/home/ada/nigh": nobody])
        #expect(found?.place == "/home/ada/nigh")
    }

    @Test func `A real path is examined from the root on, also one in the working directory`() {
        let outer = TemporaryFolder()
        mkdir("\(outer.path)/inner", 0o700)
        let path = "\(outer.path)/inner/file"
        #expect(PathExposure(ofFileAt: path) == nil)
        chmod(outer.path, 0o777)
        #expect(
            PathExposure(ofFileAt: path)?.sentence
                == "others may write \(outer.path), where it is (mode 777)")
        symlink(path, "\(outer.path)/link")
        chmod(outer.path, 0o1777)
        #expect(PathExposure(ofFileAt: "\(outer.path)/link") == nil)
        #expect(PathExposure(ofFileAt: "missing") == PathExposure(ofFileAt: "./missing"))
    }
}
