/* Solves a linear system with PETSc and tells what it took: one line of JSON on standard output.

   petsc_peer -about
       what this PETSc is and what it runs on
   petsc_peer -system FILE -solution FILE -rounds N [options of PETSc]
       reads a matrix and a right-hand side in PETSc's binary format, sets the solver up, solves N times from zero,
       the first time to warm up, and writes the last solution

   Times are those of the slowest process, between barriers. */

#include <petscksp.h>

static PetscErrorCode about(void)
{
    char petsc[256], mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    PetscMPIInt processes = 1;
    PetscBool hypre = PETSC_FALSE;

    PetscFunctionBeginUser;
    PetscCall(PetscGetVersion(petsc, sizeof petsc));
    MPI_Get_library_version(mpi, &length);
    for (char *end = mpi; *end; ++end)
        if (*end < ' ' || *end == '"' || *end == '\\') *end = ' ';
    MPI_Comm_size(PETSC_COMM_WORLD, &processes);
    PetscCall(PetscHasExternalPackage("hypre", &hypre));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                          "{\"version\": \"%d.%d.%d\", \"mpi\": \"%.60s\", \"processes\": %d, \"hypre\": %s, "
                          "\"index_bytes\": %d, \"scalar_bytes\": %d}\n",
                          PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR, mpi, (int)processes,
                          hypre ? "true" : "false", (int)sizeof(PetscInt), (int)sizeof(PetscScalar)));
    PetscFunctionReturn(0);
}

static PetscErrorCode load(const char *file, Mat *matrix, Vec *b)
{
    PetscViewer viewer;

    PetscFunctionBeginUser;
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
    PetscCall(MatCreate(PETSC_COMM_WORLD, matrix));
    PetscCall(MatSetType(*matrix, MATAIJ));
    PetscCall(MatSetFromOptions(*matrix));
    PetscCall(MatLoad(*matrix, viewer));
    PetscCall(MatSetOption(*matrix, MAT_SPD, PETSC_TRUE));
    PetscCall(MatCreateVecs(*matrix, NULL, b));
    PetscCall(VecLoad(*b, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscFunctionReturn(0);
}

static PetscErrorCode write_vector(const char *file, Vec x)
{
    PetscViewer viewer;

    PetscFunctionBeginUser;
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_WRITE, &viewer));
    PetscCall(VecView(x, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscFunctionReturn(0);
}

/* The seconds since a time, of the slowest process. */
static double since(double start)
{
    double mine = MPI_Wtime() - start, most = 0.0;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD);
    return most;
}

static double begin(void)
{
    MPI_Barrier(PETSC_COMM_WORLD);
    return MPI_Wtime();
}

static PetscErrorCode solve(KSP solver, Vec b, Vec x, PetscInt rounds)
{
    KSPConvergedReason reason = KSP_CONVERGED_ITERATING;
    PetscInt iterations = 0;
    PetscReal residual = 0.0, length = 1.0;
    PetscMPIInt processes = 1;
    double start = begin();

    PetscFunctionBeginUser;
    PetscCall(KSPSetUp(solver));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "{\"setup_seconds\": %.9g, \"seconds\": [", since(start)));
    for (PetscInt round = 0; round < rounds; ++round) {
        PetscCall(VecSet(x, 0.0));
        start = begin();
        PetscCall(KSPSolve(solver, b, x));
        PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s%.9g", round ? ", " : "", since(start)));
    }
    PetscCall(KSPGetConvergedReason(solver, &reason));
    PetscCall(KSPGetIterationNumber(solver, &iterations));
    PetscCall(KSPGetResidualNorm(solver, &residual));
    PetscCall(VecNorm(b, NORM_2, &length));
    MPI_Comm_size(PETSC_COMM_WORLD, &processes);
    PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                          "], \"iterations\": %d, \"converged\": %s, \"reason\": \"%s\", \"relative\": %.17g, "
                          "\"processes\": %d}\n",
                          (int)iterations, reason > 0 ? "true" : "false", KSPConvergedReasons[reason],
                          (double)(residual / length), (int)processes));
    PetscFunctionReturn(0);
}

static PetscErrorCode run(void)
{
    char system[PETSC_MAX_PATH_LEN] = "", solution[PETSC_MAX_PATH_LEN] = "";
    PetscInt rounds = 2;
    Mat matrix;
    Vec b, x;
    KSP solver;

    PetscFunctionBeginUser;
    PetscCall(PetscOptionsGetString(NULL, NULL, "-system", system, sizeof system, NULL));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-solution", solution, sizeof solution, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-rounds", &rounds, NULL));
    PetscCall(load(system, &matrix, &b));
    PetscCall(VecDuplicate(b, &x));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &solver));
    PetscCall(KSPSetOperators(solver, matrix, matrix));
    PetscCall(KSPSetFromOptions(solver));
    PetscCall(solve(solver, b, x, rounds));
    PetscCall(write_vector(solution, x));
    PetscCall(KSPDestroy(&solver));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&matrix));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    PetscBool asked = PETSC_FALSE;

    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-about", &asked, NULL));
    if (asked) PetscCall(about());
    else PetscCall(run());
    PetscCall(PetscFinalize());
    return 0;
}
