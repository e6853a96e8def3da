import ChildPrograms
import Foundation
import Testing

/// The program in Tests/Packages/Traits, which uses Nigh with all traits and imitations of the packages behind them.
private enum TraitsProgram {
    static let traits = ["LoggingSupport", "MetricsSupport", "ServiceLifecycleSupport"]
    static let folder = "\(BuiltPackages.root)/.build/assembled/Traits"

    /// Copies the package, makes repositories of the imitations, and lets the real addresses lead there.
    static let assembly = """
        set -e
        rm -rf "$0"
        cp -r Tests/Packages/Traits "$0"
        cd "$0"
        mirror() {
            git -C Stubs/$2 init --quiet
            git -C Stubs/$2 add --all
            git -C Stubs/$2 -c user.name=Nigh -c user.email= commit --quiet --message "An imitation"
            git -C Stubs/$2 tag $3
            echo "{\\"original\\":\\"https://github.com/$1/$2.git\\",\\"mirror\\":\\"$PWD/Stubs/$2\\"}"
        }
        mkdir -p .swiftpm/configuration
        mirrors=$(mirror apple swift-log 1.6.0; echo ,; mirror apple swift-metrics 2.5.0; echo ,
            mirror swift-server swift-service-lifecycle 2.6.0)
        echo "{\\"version\\":1,\\"object\\":[$mirrors]}" >.swiftpm/configuration/mirrors.json
        """

    /// Compiles the imitations, then Nigh's files for the traits together with the program, against the Nigh that is
    /// built already. Traits would have all of Nigh compiled again, which takes minutes.
    static let compilation = """
        set -e
        built=$1 swiftc=$2
        shift 2
        options="-swift-version 6 -warnings-as-errors -parse-as-library -module-cache-path $built/ModuleCache"
        for module in swift-log/Logging swift-metrics/CoreMetrics swift-service-lifecycle/ServiceLifecycle; do
            name=${module#*/}
            "$swiftc" $options -module-name $name -emit-module -emit-module-path "$0/$name.swiftmodule" -I "$0" \\
                -c -wmo -o "$0/$name.o" "$0/Stubs/${module%/*}/Sources/$name"/*.swift
        done
        includes="-I $built -I $built/Modules"
        for map in $(find Sources "$built" -maxdepth 4 -name module.modulemap); do
            includes="$includes -I $(dirname $map)"
        done
        "$swiftc" $options $includes -I "$0" -module-name Traits "$@" \\
            -Xfrontend -import-module -Xfrontend Nigh Sources/Nigh/Traits/*.swift "$0"/Sources/Traits/*.swift \\
            "$0"/*.o -L "$built" -lNighShared -Xlinker -rpath="$built" -o "$0/program"
        """

    @discardableResult
    static func run(_ script: String, _ arguments: [String]) throws -> [String] {
        try Child.run(
            "/usr/bin/env", ["-C", BuiltPackages.root, "sh", "-c", script] + arguments, patience: 300)
    }

    /// The packages on which the package in the folder depends, each in a line. The package manager keeps all that it
    /// has fetched in the folder `scratch`, and compares nothing with what it has fetched for another package.
    static func dependencies(of package: String, scratch: String) throws -> [String] {
        try run(
            """
            swift package --package-path "$0" --scratch-path "$1" --cache-path "$1/cache" --security-path "$1/security" \
                show-dependencies --format flatlist
            """,
            [package, scratch])
    }
}

@Suite("The traits of the package", .callsPrograms) struct TraitsTests {
    @Test func `are off by default, and nothing is fetched or resolved then`() throws {
        let scratch = "\(TraitsProgram.folder)-off"
        #expect(try TraitsProgram.dependencies(of: BuiltPackages.root, scratch: scratch) == [])
        #expect(!FileManager.default.fileExists(atPath: "\(BuiltPackages.root)/Package.resolved"))
    }

    @Test func `log and measure a session, and run it as a service that ends in good order`() throws {
        try TraitsProgram.run(TraitsProgram.assembly, [TraitsProgram.folder])
        let packages = try TraitsProgram.dependencies(
            of: TraitsProgram.folder, scratch: "\(TraitsProgram.folder)/.build")
        for name in ["swift-log", "swift-metrics", "swift-service-lifecycle"] {
            #expect(packages.contains(name), "\(packages)")
        }
        try TraitsProgram.run(
            TraitsProgram.compilation,
            [TraitsProgram.folder, BuiltPrograms.folder, BuiltPackages.tool("swiftc")]
                + TraitsProgram.traits.map { "-D\($0)" })

        let lines = try Child.run("\(TraitsProgram.folder)/program", []).map {
            $0.components(separatedBy: "|")
        }
        let connected = try #require(lines.first { $0[0] == "log" && $0[4].contains("is connected over") })
        #expect(connected[1...3] == ["program", "info", "Nigh"])
        #expect(connected[5].contains("peer-name=Lynx") && connected[5].contains("transport=memory"))
        #expect(lines.last { $0[0] == "log" }?[4] == "the session is closed")
        let metrics = try #require(lines.first { $0[0] == "metrics" })
        #expect(metrics[1].contains("nigh_messages_sent{session=scores,peer=") && metrics[2] == "1.0")
        #expect(lines.last == ["ended", "[]"], "the metrics of a session end with it")
    }
}
