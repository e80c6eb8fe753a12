// swift-tools-version: 6.0
import PackageDescription

let package = Package(
    name: "FKDownloader",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11)],
    products: [
        .library(name: "FKMiddleware", targets: ["FKMiddleware"]),
        .library(name: "FKCore", targets: ["FKCore"]),
        .executable(name: "fk", targets: ["fk"]),
        .executable(name: "fk-rpc", targets: ["fk-rpc"]),
    ],
    targets: [
        .systemLibrary(
            name: "CLibcurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
        .systemLibrary(
            name: "CLibcrypto", pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
        .systemLibrary(name: "CSystem"),
        // Without pkgConfig: a package that uses the library alone would be warned that it is not installed.
        .systemLibrary(name: "CLibwebsockets", providers: [.apt(["libwebsockets-dev"]), .brew(["libwebsockets"])]),
        .target(
            name: "FKMiddleware",
            dependencies: [.target(name: "CLibcrypto", condition: .when(platforms: [.linux]))]),
        .target(
            name: "FKCore",
            dependencies: [
                "CSystem", "FKMiddleware", .target(name: "CLibcurl", condition: .when(platforms: [.linux, .macOS])),
            ]),
        .executableTarget(name: "fk", dependencies: ["FKCore", "FKMiddleware"]),
        .target(name: "FKRPC", dependencies: ["FKCore", "FKMiddleware"]),
        .executableTarget(
            name: "fk-rpc", dependencies: ["FKRPC", "FKCore", "FKMiddleware", "CLibwebsockets"],
            resources: [.embedInCode("Page")]),
        .executableTarget(
            name: "CustomMiddleware", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/CustomMiddleware"),
        .executableTarget(name: "PollingInfo", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/PollingInfo"),
        .executableTarget(
            name: "BarrelProgress", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/BarrelProgress"),
        .executableTarget(
            name: "TwoProcesses", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/TwoProcesses"),
        .executableTarget(name: "OneFile", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/OneFile"),
        .executableTarget(name: "FetchList", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/FetchList"),
        .executableTarget(name: "FreshLink", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/FreshLink"),
        .executableTarget(name: "PhotoList", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/PhotoList"),
        .executableTarget(
            name: "ModelDownloader", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/ModelDownloader"),
        .executableTarget(name: "FileService", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/FileService"),
        .executableTarget(name: "SwiftProgram", path: "Examples/SwiftProgram"),
        .executableTarget(name: "TaskView", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/TaskView"),
        .executableTarget(name: "Migrated", dependencies: ["FKCore", "FKMiddleware"], path: "Examples/Migrated"),
        .target(name: "TestSupport", dependencies: ["FKCore", "FKMiddleware"], path: "Tests/TestSupport"),
        .testTarget(name: "FKMiddlewareTests", dependencies: ["FKMiddleware", "TestSupport"]),
        .testTarget(name: "FKCoreTests", dependencies: ["FKCore", "FKMiddleware", "TestSupport"]),
        // Sees what an application sees: neither internal nor package declarations.
        .testTarget(name: "FKCorePublicTests", dependencies: ["FKCore", "FKMiddleware"], packageAccess: false),
        .testTarget(
            name: "FKRPCTests", dependencies: ["fk", "fk-rpc", "FKRPC", "FKCore", "FKMiddleware", "TestSupport"]),
        .testTarget(name: "fkTests", dependencies: ["fk", "FKCore", "TestSupport"]),
    ],
    swiftLanguageModes: [.v6]
)
